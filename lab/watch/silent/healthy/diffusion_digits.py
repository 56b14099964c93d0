"""A small diffusion model for 8 by 8 digits that predicts the noise."""

import math

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(9)
digits = torch.tensor(load_digits().data).float() / 8 - 1
kept = torch.cumprod(1 - torch.linspace(1e-3, 0.15, 50), 0)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 64), nn.SiLU(), nn.Linear(64, 128))
        self.first, self.middle, self.last = (
            nn.Linear(64, 128),
            nn.Linear(128, 128),
            nn.Linear(128, 64),
        )

    def forward(self, x, t):
        angles = t[:, None].float() / 50 * torch.exp(torch.arange(8) * math.log(50) / 8)
        moment = self.time(torch.cat([angles.sin(), angles.cos()], 1))
        hidden = nn.functional.silu(self.first(x) + moment)
        hidden = nn.functional.silu(self.middle(hidden)) + hidden
        return self.last(hidden)


model = Denoiser()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(12):
    losses = []
    for part in torch.randperm(1600).split(64):
        x = digits[part]
        t = torch.randint(50, (len(x),))
        noise = torch.randn_like(x)
        level = kept[t][:, None]
        noisy = level.sqrt() * x + (1 - level).sqrt() * noise
        loss = nn.functional.mse_loss(model(noisy, t), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f}")
