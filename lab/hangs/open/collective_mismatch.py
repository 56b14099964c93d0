"""Rank 1 validates one step earlier than rank 0, and broadcasts where rank 0 reduces."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
weight = torch.ones(4)
for step in range(100):
    if (step + rank) % 5 == 4:
        dist.broadcast(weight, src=1)  # <- waits
    else:
        dist.all_reduce(weight)
    if rank == 0:
        print(f"step {step}", flush=True)
