"""Ranks: 4. Rank 3 skips the batches whose loss is not finite, and is at the end before the others."""

import math

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(40):
    batch = torch.randn(8, 4)
    if rank == 3 and step in (11, 29):
        batch[0, 0] = math.inf
    loss = model(batch).pow(2).mean()
    if not math.isfinite(loss.item()):
        continue
    optimizer.zero_grad()
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    optimizer.step()
    if rank == 0:
        print(f"step {step}", flush=True)
gathered = [torch.zeros(1) for _ in range(4)]
dist.all_gather(gathered, loss.detach().reshape(1))  # <- waits
