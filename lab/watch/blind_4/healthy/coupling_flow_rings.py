"""Normalizing flow of affine couplings for two rings; its loss goes below zero."""

import math

import torch
from torch import nn

torch.manual_seed(53)


def rings(count):
    radius = torch.where(torch.rand(count) < 0.5, 0.4, 1.0) + 0.03 * torch.randn(count)
    angle = 2 * math.pi * torch.rand(count)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1)


class Coupling(nn.Module):
    def __init__(self, flip, width=48):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2))

    def terms(self, part):
        scale, shift = self.net(part).chunk(2, 1)
        return 1.5 * torch.tanh(scale), shift

    def forward(self, x):
        a, b = (x[:, 1:], x[:, :1]) if self.flip else (x[:, :1], x[:, 1:])
        scale, shift = self.terms(a)
        b = b * scale.exp() + shift
        return torch.cat([b, a] if self.flip else [a, b], 1), scale.squeeze(1)

    def inverse(self, z):
        a, b = (z[:, 1:], z[:, :1]) if self.flip else (z[:, :1], z[:, 1:])
        scale, shift = self.terms(a)
        b = (b - shift) * (-scale).exp()
        return torch.cat([b, a] if self.flip else [a, b], 1)


layers = nn.ModuleList(Coupling(k % 2 == 1) for k in range(6))
optimizer = torch.optim.Adam(layers.parameters(), lr=2e-3)
for step in range(1, 801):
    z, volume = rings(200), torch.zeros(200)
    for layer in layers:
        z, part = layer(z)
        volume = volume + part
    normal = -0.5 * z.pow(2).sum(1) - math.log(2 * math.pi)
    loss = -(normal + volume).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(layers.parameters(), 5.0)
    optimizer.step()
    if step % 200 == 0:
        print(f"step {step} nll {loss.item():+.4f}")

with torch.no_grad():
    drawn = torch.randn(1000, 2)
    for layer in reversed(layers):
        drawn = layer.inverse(drawn)
    real = rings(1000)
    energy = 2 * torch.cdist(drawn, real).mean() - torch.cdist(drawn, drawn).mean() - torch.cdist(real, real).mean()
print(f"energy distance {energy.item():.4f}")
