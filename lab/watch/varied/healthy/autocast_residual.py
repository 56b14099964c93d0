"""A residual network under bfloat16 autocast with a warm-up and a cosine."""

import math

import torch
from torch import nn

torch.manual_seed(29)
torch.set_num_threads(1)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.one, self.two = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.two(torch.relu(self.one(self.norm(x))))


model = nn.Sequential(nn.Linear(12, 48), Residual(48), Residual(48), nn.LayerNorm(48), nn.Linear(48, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda step: min((step + 1) / 30, 0.5 + 0.5 * math.cos(math.pi * step / 300))
)
truth = torch.randn(12, 4)


def batch(count):
    x = torch.randn(count, 12)
    return x, (torch.sin(2 * x) @ truth).argmax(1)


xv, yv = batch(500)
for step in range(1, 301):
    x, y = batch(64)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 60 == 0:
        model.eval()
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            accuracy = (model(xv).argmax(1) == yv).float().mean()
        model.train()
        print(f"step {step} loss {loss.item():.3f} val accuracy {accuracy:.4f}")
