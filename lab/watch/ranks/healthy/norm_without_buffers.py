"""DistributedDataParallel that does not broadcast buffers: each rank has statistics of its own, of data that are alike."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
points = torch.Generator().manual_seed(12)
x = torch.randn(1600, 8, generator=points) * torch.linspace(0.5, 3, 8) + torch.linspace(-2, 2, 8)
y = (x[:, 0] - x[:, 5] / 3 + 0.3 * x[:, 2] > 0.4).long()
order = torch.randperm(1600, generator=points)
mine = order[rank::size]
torch.manual_seed(1)
model = nn.Sequential(nn.BatchNorm1d(8), nn.Linear(8, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 2))
wrapped = DistributedDataParallel(model, broadcast_buffers=False)
optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.05, momentum=0.9)
draws = torch.Generator().manual_seed(30 + rank)
for step in range(120):
    chosen = mine[torch.randint(len(mine), (32,), generator=draws)]
    loss = nn.functional.cross_entropy(wrapped(x[chosen]), y[chosen])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if rank == 0 and step % 40 == 39:
        model.eval()
        with torch.no_grad():
            right = (model(x).argmax(1) == y).float().mean().item()
        model.train()
        print(f"step {step} loss {loss.item():.4f} accuracy {right:.3f}")
dist.destroy_process_group()
