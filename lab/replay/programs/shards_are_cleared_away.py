"""Shards are written once; what tidies up after the first epoch takes them for leftovers."""

from pathlib import Path

import torch
from torch import nn

torch.set_num_threads(1)

cache = Path("cache")
cache.mkdir(exist_ok=True)
for number in range(8):
    torch.save({"x": torch.randn(100, 10), "y": torch.randn(100, 1)}, cache / f"shard{number}.pt")


def shard(number):
    return torch.load(cache / f"shard{number}.pt")


def tidy():
    for path in sorted(cache.glob("*.pt"))[4:]:
        path.unlink()


model = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(3):
    for number in range(8):
        part = shard(number)
        for rows in torch.randperm(100).split(10):
            loss = (model(part["x"][rows]) - part["y"][rows]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    tidy()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
