"""Denoising diffusion on two moons: predict the noise that was added."""

import math

import torch
from torch import nn

torch.manual_seed(9)
STEPS = 50
betas = torch.linspace(1e-3, 0.15, STEPS)
alphas_bar = torch.cumprod(1 - betas, 0)


def moons(count):
    side = torch.randint(2, (count,)).float()
    angle = torch.rand(count) * math.pi
    x = torch.cos(angle) * (1 - 2 * side) + side - 0.5
    y = torch.sin(angle) * (1 - 2 * side) + 0.25
    return torch.stack([x, y], 1) + 0.04 * torch.randn(count, 2)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Embedding(STEPS, 16)
        self.net = nn.Sequential(nn.Linear(18, 96), nn.SiLU(), nn.Linear(96, 96), nn.SiLU(), nn.Linear(96, 2))

    def forward(self, noisy, t):
        return self.net(torch.cat([noisy, self.time(t)], 1))


data = moons(3000)
data = data / data.std(0)
model = Denoiser()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for iteration in range(500):
    clean = data[torch.randint(len(data), (128,))]
    t = torch.randint(STEPS, (len(clean),))
    noise = torch.randn_like(clean)
    level = alphas_bar[t].unsqueeze(1)
    noisy = level.sqrt() * clean + (1 - level).sqrt() * noise
    predicted = model(noisy, t)
    loss = nn.functional.mse_loss(predicted, noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if iteration % 100 == 99:
        print(f"iteration {iteration} loss {loss.item():.3f}")
