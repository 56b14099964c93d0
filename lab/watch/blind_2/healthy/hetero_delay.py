"""Predicts the delay of trains with its uncertainty by a Gaussian likelihood; the loss is noisy and ends below zero."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Settings:
    epochs: int = 30
    batch_size: int = 64
    lr: float = 0.02
    momentum: float = 0.9
    weight_decay: float = 1e-5
    max_norm: float = 2.0


def make_split(n):
    x = torch.rand(n, 3) * 2 - 1
    mean = torch.sin(3 * x[:, 0]) + 0.5 * x[:, 1] * x[:, 2]
    std = 0.04 + 0.5 * (x[:, 1] > 0.3).float() * (x[:, 2].abs() + 0.2)
    return x, mean + std * torch.randn(n)


class Delay(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(3, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.mean = nn.Linear(width, 1)
        self.raw = nn.Linear(width, 1)

    def forward(self, x):
        h = self.trunk(x)
        var = self.raw(h).exp()
        return self.mean(h).squeeze(1), var.squeeze(1)


def batches(x, y, size):
    for idx in torch.randperm(len(y)).split(size):
        yield x[idx], y[idx]


def fit(settings):
    torch.manual_seed(41)
    x, y = make_split(4000)
    x_val, y_val = make_split(1500)
    model = Delay()
    optimizer = torch.optim.SGD(
        model.parameters(), lr=settings.lr, momentum=settings.momentum, weight_decay=settings.weight_decay
    )
    nll = nn.GaussianNLLLoss(eps=1e-4)
    for epoch in range(settings.epochs):
        for xb, yb in batches(x, y, settings.batch_size):
            mean, var = model(xb)
            loss = nll(mean, yb, var)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), settings.max_norm)
            optimizer.step()
        with torch.no_grad():
            mean, var = model(x_val)
            val_nll = nll(mean, y_val, var).item()
            within = ((y_val - mean).abs() < var.clamp(min=1e-4).sqrt()).float().mean().item()
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1} batch {loss.item():+.3f} within_1_std {within:.3f} val_nll {val_nll:+.4f}")


fit(Settings())
