"""Gradient accumulation; the end of the epoch averages micro-batches that are not there."""

import torch
from torch import nn

torch.set_num_threads(1)

model = nn.Sequential(nn.Linear(5, 40), nn.SiLU(), nn.Linear(40, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
x = torch.randn(1024, 5)
y = x.prod(1, keepdim=True)
EVERY = 4
for epoch in range(4):
    pending = []
    for number, rows in enumerate(torch.randperm(1024).split(16), 1):
        loss = (model(x[rows]) - y[rows]).pow(2).mean()
        (loss / EVERY).backward()
        pending.append(loss.detach())
        if number % EVERY == 0:
            optimizer.step()
            optimizer.zero_grad()
            pending = []
    print(f"epoch {epoch}: leftover loss {torch.stack(pending).mean():.4f}")
