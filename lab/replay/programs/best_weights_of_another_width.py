"""Sweeps over two widths, and puts the best weights of the first into the second."""

import torch
from torch import nn

torch.set_num_threads(1)


def build(width):
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 1))


best, best_loss = None, float("inf")
for width in (16, 32):
    model = build(width)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(200):
        x = torch.randn(64, 8)
        loss = nn.functional.mse_loss(model(x), x[:, :1] * x[:, 1:2])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loss.item() < best_loss and best is None:
            torch.save(model.state_dict(), "best.pt")
            best_loss = loss.item()
    best = width
    print(f"width {width}: loss {loss.item():.4f}")
model.load_state_dict(torch.load("best.pt"))
print("best weights are back")
