"""Solves the heat equation of a rod with a network: no data, only the residual of the equation and the edges."""
import math

import torch
from torch import nn

SEED = 157
torch.manual_seed(SEED)
DIFFUSION = 0.1


class Rod(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, place, time):
        return self.net(torch.stack([place, time], -1)).squeeze(-1)


def residual(rod, count=256):
    place = torch.rand(count, requires_grad=True)
    time = torch.rand(count, requires_grad=True)
    heat = rod(place, time)
    by_place, by_time = torch.autograd.grad(heat.sum(), (place, time), create_graph=True)
    twice, = torch.autograd.grad(by_place.sum(), place, create_graph=True)
    return (by_time - DIFFUSION * twice).square().mean()


def edges(rod, count=128):
    place, time = torch.rand(count), torch.rand(count)
    start = rod(place, torch.zeros(count)) - torch.sin(math.pi * place)
    ends = torch.cat([rod(torch.zeros(count), time), rod(torch.ones(count), time)])
    return start.square().mean() + ends.square().mean()


rod = Rod()
optimizer = torch.optim.Adam(rod.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9985)
place, time = torch.meshgrid(torch.linspace(0, 1, 41), torch.linspace(0, 1, 41), indexing="ij")
exact = torch.exp(-DIFFUSION * math.pi**2 * time) * torch.sin(math.pi * place)
for step in range(900):
    inside, outside = residual(rod), edges(rod)
    loss = inside + 5 * outside
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 150 == 149:
        with torch.no_grad():
            error = (rod(place.flatten(), time.flatten()) - exact.flatten()).square().mean().sqrt()
        print(f"step {step + 1}: residual {inside.item():.6f}, edges {outside.item():.6f}, rmse {error:.5f}")
