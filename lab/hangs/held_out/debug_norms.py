"""Ranks: 3. Slow: 1. Rank 1 logs the spectrum of a large weight in each step."""

import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
net = torch.nn.Sequential(torch.nn.Linear(160, 160), torch.nn.ReLU(), torch.nn.Linear(160, 1))
model = torch.nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for step in range(100_000):
    loss = model(torch.randn(64, 160)).pow(2).mean()
    if rank == 1:
        for _ in range(4):
            torch.linalg.svdvals(net[0].weight.detach())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if rank == 0 and step % 50 == 0:
        print(f"step {step}: {loss.item():.3f}", flush=True)
dist.destroy_process_group()
