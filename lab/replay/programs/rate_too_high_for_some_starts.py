"""Never seeded: a rate at the edge, so that it is the start that says when the loss leaves."""

import torch
from torch import nn

torch.set_num_threads(1)

model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for step in range(3000):
    x = torch.randn(32, 10) * (1 + step / 200)
    loss = (model(x) - x.pow(2).sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        print(f"step {step}: {loss.item():.4g}")
    if not torch.isfinite(loss):
        raise RuntimeError(f"diverged: {loss.item()}")
