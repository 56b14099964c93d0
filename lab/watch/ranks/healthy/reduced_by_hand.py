"""Data parallel by hand: parameters are broadcast, gradients are averaged with all_reduce, batches are sliced by rank."""

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
data = torch.Generator().manual_seed(1)
x = torch.randn(1200, 10, generator=data)
y = torch.sin(x[:, :1] * 2) + x[:, 1:2] * x[:, 2:3]

torch.manual_seed(rank)
model = nn.Sequential(nn.Linear(10, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1))
for parameter in model.parameters():
    dist.broadcast(parameter.data, src=0)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def average_gradients():
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= size


order = torch.Generator().manual_seed(7)
for step in range(160):
    chosen = torch.randint(1200, (32 * size,), generator=order)
    mine = chosen[rank * 32 : (rank + 1) * 32]
    loss = nn.functional.mse_loss(model(x[mine]), y[mine])
    optimizer.zero_grad()
    loss.backward()
    average_gradients()
    optimizer.step()
    if rank == 0 and step % 40 == 39:
        print(f"step {step} loss {loss.item():.4f}")
dist.destroy_process_group()
