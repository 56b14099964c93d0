"""Regression with small noisy batches at a high rate; an exponential moving average of the weights is evaluated."""

import copy
import math

import torch
import torch.nn as nn

torch.manual_seed(31)


class EMA:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = copy.deepcopy(model).eval()
        for p in self.shadow.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.mul_(self.decay).add_(p, alpha=1 - self.decay)


def surface(n, noise=0.0):
    x = torch.rand(n, 2) * 4 - 2
    y = torch.sin(2 * x[:, 0]) * torch.cos(x[:, 1]) + 0.3 * x[:, 1]
    return x, (y + noise * torch.randn(n))[:, None]


model = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
ema = EMA(model, decay=0.99)
optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 200))
val_x, val_y = surface(1000)
for step in range(1, 2401):
    x, y = surface(16, noise=0.5)
    loss = nn.functional.smooth_l1_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    ema.update(model)
    if step % 300 == 0:
        with torch.no_grad():
            rmse = math.sqrt(nn.functional.mse_loss(ema.shadow(val_x), val_y).item())
        print(f"step {step} loss {loss.item():.4f} ema val_rmse {rmse:.4f}")
