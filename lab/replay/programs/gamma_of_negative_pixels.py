"""Noise first, then a random gamma: noise makes some pixels negative."""

import torch
from torch import nn

torch.set_num_threads(1)

images = torch.rand(256, 64) * 0.8 + 0.15
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 64))
optimizer = torch.optim.Adam(model.parameters())


def augment(batch):
    batch = batch + 0.035 * torch.randn_like(batch)
    return batch ** (0.5 + torch.rand(len(batch), 1))


for step in range(4000):
    batch = images[torch.randint(256, (8,))]
    loss = (model(augment(batch)) - batch).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.4f}, norm {norm.item():.3f}")
