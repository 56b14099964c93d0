"""Ranks: 2. Slow: 1. Rank 1 evaluates a metric in Python in each step."""

import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(100_000):
    loss = model(torch.randn(512, 64)).pow(2).mean()
    if rank == 1:
        sum(n * n % 7 for n in range(100_000))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if rank == 0 and step % 50 == 0:
        print(f"step {step}", flush=True)
dist.destroy_process_group()
