"""Denoising diffusion of short heart beats; samples come from an average of the weights."""

import copy
import math

import torch
from torch import nn

torch.manual_seed(6)
POINTS, STEPS = 24, 40


def beats(count):
    t = torch.linspace(-1, 1, POINTS)
    place = 0.3 * torch.randn(count, 1)
    width = 0.1 + 0.1 * torch.rand(count, 1)
    sign = torch.where(torch.rand(count, 1) < 0.5, 1.0, -1.0)
    return sign * torch.exp(-(((t - place) / width) ** 2)) + 0.2 * torch.sin(3 * t)


class Denoiser(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.time = nn.Embedding(STEPS, 32)
        self.net = nn.Sequential(
            nn.Linear(POINTS + 32, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, POINTS)
        )

    def forward(self, x, t):
        return self.net(torch.cat([x, self.time(t)], 1))


class Average:
    def __init__(self, model, decay=0.98):
        self.model, self.decay = copy.deepcopy(model).requires_grad_(False), decay

    @torch.no_grad()
    def update(self, model):
        for mean, new in zip(self.model.parameters(), model.parameters()):
            mean.mul_(self.decay).add_(new, alpha=1 - self.decay)


beta = torch.linspace(1e-3, 0.2, STEPS)
alpha_bar = torch.cumprod(1 - beta, 0)
model = Denoiser()
average = Average(model)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
data = beats(2000)

for step in range(1, 1501):
    x0 = data[torch.randint(len(data), (64,))]
    t = torch.randint(STEPS, (64,))
    noise = torch.randn_like(x0)
    scale = alpha_bar[t][:, None]
    loss = (model(scale.sqrt() * x0 + (1 - scale).sqrt() * noise, t) - noise).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update(model)
    if step % 250 == 0:
        print(f"step {step} loss {loss.item():.4f}")

with torch.no_grad():
    x = torch.randn(400, POINTS)
    for t in reversed(range(STEPS)):
        noise = average.model(x, torch.full((400,), t))
        x = (x - beta[t] / math.sqrt(1 - alpha_bar[t]) * noise) / math.sqrt(1 - beta[t])
        if t:
            x = x + beta[t].sqrt() * torch.randn_like(x)
distance = torch.cdist(x, beats(400))
print(f"chamfer distance {(distance.min(0).values.mean() + distance.min(1).values.mean()).item():.4f}")
