"""The thread that prefetches batches on rank 1 dies of an exception that nobody sees."""

import queue
import threading

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
batches = queue.Queue(maxsize=2)


def prefetch():
    for index in range(100):
        if rank == 1 and index == 3:
            raise SystemExit  # A thread ends of it without a word.
        batches.put(torch.full((4,), float(index)))


threading.Thread(target=prefetch, daemon=True).start()
for step in range(100):
    batch = batches.get()  # <- waits
    dist.all_reduce(batch)
    if rank == 0:
        print(f"step {step}", flush=True)
