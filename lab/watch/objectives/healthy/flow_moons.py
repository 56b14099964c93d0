"""Estimates a density with affine couplings; the likelihood is maximised directly."""

import math

import torch
from torch import nn

torch.manual_seed(2)
torch.set_num_threads(1)


def moons(count: int) -> torch.Tensor:
    angle = math.pi * torch.rand(count)
    upper = torch.rand(count) < 0.5
    x = torch.where(upper, angle.cos(), 1 - angle.cos())
    y = torch.where(upper, angle.sin(), 0.5 - angle.sin())
    return (torch.stack([x, y], 1) - torch.tensor([0.5, 0.25])) / 0.7 + 0.07 * torch.randn(count, 2)


class Coupling(nn.Module):
    def __init__(self, first: int) -> None:
        super().__init__()
        self.first = first
        self.net = nn.Sequential(nn.Linear(1, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 2))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        fixed, moved = x[:, self.first], x[:, 1 - self.first]
        log_scale, shift = self.net(fixed[:, None]).unbind(1)
        log_scale = torch.tanh(log_scale) * 2
        moved = moved * log_scale.exp() + shift
        parts = [fixed, moved] if self.first == 0 else [moved, fixed]
        return torch.stack(parts, 1), log_scale


class Flow(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.couplings = nn.ModuleList(Coupling(index % 2) for index in range(6))

    def log_prob(self, x: torch.Tensor) -> torch.Tensor:
        volume = torch.zeros(len(x))
        for coupling in self.couplings:
            x, log_scale = coupling(x)
            volume = volume + log_scale
        normal = -0.5 * (x**2).sum(1) - math.log(2 * math.pi)
        return normal + volume


points, test = moons(2048), moons(1024)
flow = Flow()
optimizer = torch.optim.Adam(flow.parameters(), lr=3e-3, maximize=True)
for epoch in range(10):
    for rows in torch.randperm(2048).split(128):
        likelihood = flow.log_prob(points[rows]).mean()
        optimizer.zero_grad()
        likelihood.backward()
        optimizer.step()
    with torch.no_grad():
        held = flow.log_prob(test).mean()
    print(f"epoch {epoch}: log likelihood of the last batch {likelihood.item():.3f}, test {held.item():.3f}")
