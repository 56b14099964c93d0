"""Metric learning with the hardest triplets of a batch; seven digits are trained, the neighbours of all ten are judged."""

import torch
from sklearn.datasets import load_digits
from torch import nn

SEED = 32
torch.manual_seed(SEED)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y)
order = torch.randperm(len(x))
x, y = x[order], y[order]
warped = torch.tanh(x @ torch.randn(64, 64) * 0.5) + 0.3 * torch.randn(len(x), 64)
known = (y < 7).nonzero().squeeze(1)
known = known[known < 1200]
MARGIN = 0.3

model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 16))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(1, 601):
    index = known[torch.randint(len(known), (84,))]
    points = nn.functional.normalize(model(warped[index]), dim=1)
    distance = torch.cdist(points, points)
    same = y[index][:, None] == y[index][None]
    farthest = distance.masked_fill(~same, 0.0).max(1).values
    nearest = distance.masked_fill(same, float("inf")).min(1).values
    loss = nn.functional.softplus((farthest - nearest + MARGIN) * 5).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step} loss {loss.item():.4f}")
with torch.no_grad():
    points = nn.functional.normalize(model(warped), dim=1)
nearest = torch.cdist(points[1200:], points[:1200]).argmin(1)
print(f"recall at 1 {(y[:1200][nearest] == y[1200:]).float().mean():.4f}")
