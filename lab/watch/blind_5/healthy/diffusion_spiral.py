"""A diffusion model of points on a spiral: a small network predicts the noise, 40 steps lead back."""

import torch
from torch import nn

SEED = 16
torch.manual_seed(SEED)
STEPS = 40
betas = torch.linspace(1e-3, 0.2, STEPS)
alphas = 1 - betas
alpha_bars = torch.cumprod(alphas, 0)


def spiral(count):
    angle = 1 + 8 * torch.rand(count, 1).sqrt()
    return torch.cat([angle * angle.cos(), angle * angle.sin()], 1) / 4 + 0.03 * torch.randn(count, 2)


class Denoiser(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.times = nn.Embedding(STEPS, width)
        self.inputs = nn.Linear(2, width)
        self.layers = nn.Sequential(nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.noise = nn.Linear(width, 2)

    def forward(self, x, t):
        return self.noise(self.layers(self.inputs(x) + self.times(t)))


model = Denoiser()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(1, 2001):
    clean, t, noise = spiral(256), torch.randint(STEPS, (256,)), torch.randn(256, 2)
    level = alpha_bars[t][:, None]
    loss = (model(level.sqrt() * clean + (1 - level).sqrt() * noise, t) - noise).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 200 == 0:
        print(f"step {step} loss {loss.item():.4f}")

with torch.no_grad():
    x = torch.randn(1000, 2)
    for t in reversed(range(STEPS)):
        noise = model(x, torch.full((1000,), t))
        x = (x - betas[t] / (1 - alpha_bars[t]).sqrt() * noise) / alphas[t].sqrt()
        if t:
            x = x + betas[t].sqrt() * torch.randn(1000, 2)
    real = spiral(1000)
    distance = 2 * torch.cdist(x, real).mean() - torch.cdist(x, x).mean() - torch.cdist(real, real).mean()
print(f"energy distance {distance.item():.4f}")
