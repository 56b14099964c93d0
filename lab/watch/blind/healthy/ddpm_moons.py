"""A tiny DDPM on two arcs; the distance of generated points to real ones is printed."""

import math

import torch
from torch import nn

torch.manual_seed(11)
T = 50
betas = torch.linspace(1e-3, 0.15, T)
alphas = 1 - betas
alpha_bar = alphas.cumprod(0)


def arcs(n):
    t = math.pi * torch.rand(n)
    upper = torch.rand(n) < 0.5
    x = torch.where(upper, t.cos(), 1 - t.cos())
    y = torch.where(upper, t.sin(), 0.5 - t.sin())
    return torch.stack([x - 0.5, y - 0.25], 1) * 1.5 + 0.04 * torch.randn(n, 2)


class Denoiser(nn.Module):
    def __init__(self, dim=96):
        super().__init__()
        self.time = nn.Embedding(T, dim)
        self.inp = nn.Linear(2, dim)
        self.body = nn.Sequential(nn.SiLU(), nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim), nn.SiLU())
        self.out = nn.Linear(dim, 2)

    def forward(self, x, t):
        return self.out(self.body(self.inp(x) + self.time(t)))


@torch.no_grad()
def generate(model, n):
    x = torch.randn(n, 2)
    for t in reversed(range(T)):
        eps = model(x, torch.full((n,), t))
        x = (x - betas[t] / (1 - alpha_bar[t]).sqrt() * eps) / alphas[t].sqrt()
        if t:
            x = x + betas[t].sqrt() * torch.randn_like(x)
    return x


model = Denoiser()
optim = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step in range(1, 2001):
    x0 = arcs(256)
    t = torch.randint(0, T, (256,))
    noise = torch.randn_like(x0)
    a = alpha_bar[t][:, None]
    noisy = a.sqrt() * x0 + (1 - a).sqrt() * noise
    pred = model(noisy, t)
    loss = nn.functional.mse_loss(pred, noise)
    optim.zero_grad(set_to_none=True)
    loss.backward()
    optim.step()
    if step % 250 == 0:
        real, made = arcs(1000), generate(model, 1000)
        both = torch.cdist(real, made)
        chamfer = (both.min(0).values.mean() + both.min(1).values.mean()).item()
        print(f"step {step} mse {loss.item():.4f} chamfer {chamfer:.4f}")
