"""Ratings of users and items on four ranks: gradients are reduced by hand after each backward pass."""

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
data = torch.Generator().manual_seed(81)
taste, kind = torch.randn(60, 5, generator=data), torch.randn(90, 5, generator=data)
users = torch.randint(0, 60, (4800,), generator=data)
items = torch.randint(0, 90, (4800,), generator=data)
ratings = (taste[users] * kind[items]).sum(1) / 2 + 0.1 * torch.randn(4800, generator=data)
train, val = range(4000), slice(4000, 4800)
mine = torch.tensor(train[rank::world])


class Ratings(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = nn.Embedding(60, 16)
        self.items = nn.Embedding(90, 16)
        self.mix = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, users, items):
        u, i = self.users(users), self.items(items)
        return (u * i).sum(1) + self.mix(torch.cat([u, i], 1)).squeeze(1)


torch.manual_seed(82)
model = Ratings()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
torch.manual_seed(600 + rank)
for epoch in range(6):
    order = mine[torch.randperm(len(mine))]
    for batch in order.split(40):
        loss = nn.functional.mse_loss(model(users[batch], items[batch]), ratings[batch])
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= world
        optimizer.step()
    with torch.no_grad():
        error = nn.functional.mse_loss(model(users[val], items[val]), ratings[val])
    if rank == 0:
        print(f"epoch {epoch} train {loss.item():.3f} val mse {error.item():.3f}")
dist.destroy_process_group()
