"""Ranks: 2. The thread that prefetches on rank 0 has died; the training waits for its event."""

import threading

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
ready = threading.Event()


def prefetch():
    batches = iter(range(20))
    while True:
        try:
            next(batches)
        except StopIteration:
            return
        ready.set()


threading.Thread(target=prefetch, daemon=True).start()
for step in range(100):
    if rank == 0 and step >= 20:
        ready.clear()
    ready.wait()  # <- waits
    loss = torch.ones(1)
    dist.all_reduce(loss)
    if rank == 1:
        print(f"step {step} loss {loss.item()}", flush=True)
