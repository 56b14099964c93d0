"""A small diffusion model of points on a pinwheel."""
import math

import torch
from torch import nn

SEED = 29
STEPS = 60
torch.manual_seed(SEED)


def pinwheel(count):
    arm = torch.randint(5, (count,)) * 2 * math.pi / 5
    radius = 1 + 0.35 * torch.randn(count)
    across = 0.05 * torch.randn(count)
    turn = arm + 0.4 * radius.exp()
    return torch.stack([radius * turn.cos() - across * turn.sin(), radius * turn.sin() + across * turn.cos()], 1)


class Denoiser(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.register_buffer("rates", 2.0 ** torch.arange(6))
        self.net = nn.Sequential(
            nn.Linear(2 + 12, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2),
        )

    def forward(self, points, step):
        phase = (step / STEPS)[:, None] * self.rates
        return self.net(torch.cat([points, phase.sin(), phase.cos()], 1))


beta = torch.linspace(1e-3, 0.15, STEPS)
kept = torch.cumprod(1 - beta, 0)


@torch.no_grad()
def sample(model, count):
    points = torch.randn(count, 2)
    for step in reversed(range(STEPS)):
        noise = model(points, torch.full((count,), step))
        points = (points - beta[step] / (1 - kept[step]).sqrt() * noise) / (1 - beta[step]).sqrt()
        if step:
            points = points + beta[step].sqrt() * torch.randn_like(points)
    return points


def energy_distance(a, b):
    return 2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()


model = Denoiser()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1600)
average = 0.0
for iteration in range(1600):
    clean = pinwheel(256)
    step = torch.randint(STEPS, (256,))
    noise = torch.randn_like(clean)
    share = kept[step][:, None]
    loss = nn.functional.mse_loss(model(share.sqrt() * clean + (1 - share).sqrt() * noise, step), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    average = 0.98 * average + 0.02 * loss.item()
    if iteration % 400 == 399:
        distance = energy_distance(sample(model, 2000), pinwheel(2000))
        print(f"iteration {iteration + 1}: loss {average:.4f}, energy distance {distance:.5f}")
