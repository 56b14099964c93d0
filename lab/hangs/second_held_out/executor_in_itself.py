"""Ranks: 2. Rank 0 writes checkpoints in a pool of one thread, whose task gives another one to the same pool."""

from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
pool = ThreadPoolExecutor(max_workers=1)


def write(step):
    return step


def save(step):
    parts = [pool.submit(write, step) for _ in range(2)]
    return [part.result() for part in parts]


for step in range(100):
    dist.all_reduce(torch.ones(4))
    if rank == 0:
        print(f"step {step}", flush=True)
        if step == 30:
            saved = pool.submit(save, step)
            saved.result()  # <- waits
