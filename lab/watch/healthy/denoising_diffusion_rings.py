"""A small diffusion model of two-dimensional points: the network learns to tell the noise in a noisy point.

The loss stays far above zero by nature. What counts is where the samples lie.
Should reach: sample distance to the rings below 0.15 (pure noise: 0.5).
"""

import torch
import torch.nn as nn

torch.manual_seed(0)
torch.set_num_threads(1)
STEPS = 50
BETAS = torch.linspace(1e-3, 0.15, STEPS)
ALPHAS = 1 - BETAS
ALPHA_BARS = torch.cumprod(ALPHAS, 0)


def rings(count):
    radius = torch.where(torch.rand(count) < 0.35, 0.6, 1.6)
    angle = 2 * torch.pi * torch.rand(count)
    points = torch.stack([radius * angle.cos(), radius * angle.sin()], 1)
    return points + 0.03 * torch.randn(count, 2)


class Denoiser(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.time = nn.Embedding(STEPS, width)
        self.inner = nn.Linear(2, width)
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU()) for _ in range(3))
        self.outer = nn.Linear(width, 2)

    def forward(self, x, t):
        h = self.inner(x) + self.time(t)
        for block in self.blocks:
            h = h + block(h)
        return self.outer(h)


@torch.no_grad()
def sample(model, count):
    model.eval()
    x = torch.randn(count, 2)
    for t in reversed(range(STEPS)):
        noise = model(x, torch.full((count,), t))
        x = (x - BETAS[t] / (1 - ALPHA_BARS[t]).sqrt() * noise) / ALPHAS[t].sqrt()
        if t > 0:
            x = x + BETAS[t].sqrt() * torch.randn_like(x)
    model.train()
    return x


data = rings(4000)
model = Denoiser()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(1, 61):
    losses = []
    for index in torch.randperm(len(data)).split(200):
        x = data[index]
        t = torch.randint(0, STEPS, (len(x),))
        noise = torch.randn_like(x)
        bar = ALPHA_BARS[t].unsqueeze(1)
        loss = ((model(bar.sqrt() * x + (1 - bar).sqrt() * noise, t) - noise) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if epoch % 10 == 0:
        radius = sample(model, 1000).norm(dim=1)
        distance = torch.minimum((radius - 0.6).abs(), (radius - 1.6).abs()).mean()
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f}, sample distance to the rings {distance:.4f}")
radius = torch.randn(1000, 2).norm(dim=1)
noise_distance = torch.minimum((radius - 0.6).abs(), (radius - 1.6).abs()).mean()
print(f"(pure noise lies {noise_distance:.3f} away)")
