"""Denoising diffusion of two interleaved moons; quality is the energy distance of its samples to fresh data."""

import math

import torch
from sklearn.datasets import make_moons
from torch import nn

T = 80


def data(n, seed):
    points = torch.tensor(make_moons(n, noise=0.05, random_state=seed)[0], dtype=torch.float32)
    return (points - torch.tensor([0.5, 0.25])) / torch.tensor([0.87, 0.5])


class TimeEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("freqs", torch.exp(torch.linspace(0, math.log(200), dim // 2)))

    def forward(self, t):
        angles = (t / T)[:, None] * self.freqs
        return torch.cat([angles.sin(), angles.cos()], dim=1)


class Denoiser(nn.Module):
    def __init__(self, width=96, emb=32):
        super().__init__()
        self.time = TimeEmbedding(emb)
        self.inp = nn.Linear(2 + emb, width)
        self.hidden = nn.ModuleList([nn.Linear(width + emb, width) for _ in range(2)])
        self.out = nn.Linear(width, 2)

    def forward(self, x, t):
        e = self.time(t)
        h = torch.nn.functional.silu(self.inp(torch.cat([x, e], 1)))
        for layer in self.hidden:
            h = h + torch.nn.functional.silu(layer(torch.cat([h, e], 1)))
        return self.out(h)


class Diffusion:
    def __init__(self):
        self.betas = torch.linspace(1e-3, 0.12, T)
        self.alphas = 1 - self.betas
        self.alpha_bars = self.alphas.cumprod(0)

    def noisy(self, x0, t, noise):
        signal = self.alpha_bars[t].sqrt()[:, None]
        return signal * x0 + (1 - self.alpha_bars[t]).sqrt()[:, None] * noise

    def loss(self, net, x0):
        t = torch.randint(0, T, (len(x0),))
        noise = torch.randn_like(x0)
        predicted = net(self.noisy(x0, t, noise), t)
        return ((predicted - noise) ** 2).mean()

    @torch.no_grad()
    def sample(self, net, n):
        x = torch.randn(n, 2)
        for step in reversed(range(T)):
            t = torch.full((n,), step)
            eps = net(x, t)
            x = (x - self.betas[step] / (1 - self.alpha_bars[step]).sqrt() * eps) / self.alphas[step].sqrt()
            if step:
                x = x + self.betas[step].sqrt() * torch.randn_like(x)
        return x


def energy_distance(a, b):
    return (2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


torch.manual_seed(23)
x = data(4000, seed=0)
fresh = data(1500, seed=1)
net, diffusion = Denoiser(), Diffusion()
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-4)
for step in range(1, 2001):
    loss = diffusion.loss(net, x[torch.randint(len(x), (256,))])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 400 == 0:
        samples = diffusion.sample(net, 1500)
        print(f"step {step} loss {loss.item():.4f} energy_distance {energy_distance(samples, fresh):.5f}")
