"""Ranks: 3. Slow: 1. Rank 1 holds millions of small objects and collects garbage at each step."""

import gc

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
index = [[number] for number in range(1_500_000)] if rank == 1 else []
model = DistributedDataParallel(
    torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.Linear(128, 8))
)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(100_000):
    loss = model(torch.randn(16, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    gc.collect(2 if rank == 1 else 0)
    if rank == 0 and step % 50 == 0:
        print(f"step {step}", flush=True)
