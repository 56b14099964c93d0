"""Quantization-aware training: weights on a coarse grid in the forward pass, full precision for the updates."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(47)
digits = load_digits()
x = torch.tensor(digits.data / 8.0 - 1.0, dtype=torch.float32)
y = torch.tensor(digits.target)
order = torch.randperm(len(x))
train, test = order[:1300], order[1300:]


def on_grid(w, levels=4):
    scale = w.detach().abs().max() / (levels / 2)
    grid = (w / scale).round().clamp(-levels // 2, levels // 2) * scale
    return w + (grid - w).detach()


class GridLinear(nn.Linear):
    def forward(self, x):
        return F.linear(x, on_grid(self.weight), self.bias)


net = nn.Sequential(
    GridLinear(64, 48), nn.ReLU(), GridLinear(48, 48), nn.ReLU(), GridLinear(48, 10)
)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(12):
    total = 0.0
    for rows in train[torch.randperm(len(train))].split(50):
        loss = F.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1} loss {total / 26:.4f}")

with torch.no_grad():
    print(f"accuracy on the grid {(net(x[test]).argmax(1) == y[test]).float().mean().item():.4f}")
