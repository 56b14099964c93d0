"""Scores are summed in half precision, and grow."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(1)

table = nn.Embedding(500, 32)
optimizer = torch.optim.Adam(table.parameters(), lr=0.05)
for step in range(400):
    words = torch.randint(500, (64, 200))
    bags = table(words).half().mul(6).pow(2).sum(dim=1).float()
    loss = (bags.mean(1) / 1000 - 80).pow(2).mean()
    if not loss.isfinite():
        raise ValueError(f"step {step}: loss is {loss.item()}")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step}: {loss.item():.1f}")
