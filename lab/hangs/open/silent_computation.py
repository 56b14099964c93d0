"""Rank 0 computes for long on one line; rank 1 waits for its result."""

import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
print("start", flush=True)
total = torch.zeros(1)
if rank == 0:
    end = time.monotonic() + 50
    while time.monotonic() < end:
        total += torch.linalg.svdvals(torch.randn(300, 300)).sum()
dist.all_reduce(total)
print("done", flush=True)
dist.destroy_process_group()
