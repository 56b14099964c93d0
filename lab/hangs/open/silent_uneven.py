"""Ranks: 4. Shards of uneven length: rank 0 has ten times as much to do before the gradients are averaged."""

import time

import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
print("start", flush=True)
end = time.monotonic() + (50 if rank == 0 else 5)
while time.monotonic() < end:
    torch.randn(256, 256) @ torch.randn(256, 256)
dist.all_reduce(torch.ones(1))
print("done", flush=True)
dist.destroy_process_group()
