"""Plain SGD whose learning rate goes up and down in cycles; the loss rises with it each time."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(67)
digits = load_digits()
x = torch.tensor((digits.data - 8.0) / 8.0, dtype=torch.float32)
y = torch.tensor(digits.target)
order = torch.randperm(len(x))
train, test = order[:1300], order[1300:]

net = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 10))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
cycle = torch.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.01, max_lr=0.12, step_size_up=60, mode="triangular2")

for epoch in range(12):
    total = 0.0
    for rows in train[torch.randperm(len(train))].split(32):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        cycle.step()
        total += loss.item()
    print(f"epoch {epoch + 1} loss {total / 41:.4f} lr {cycle.get_last_lr()[0]:.4f}")

with torch.no_grad():
    print(f"test accuracy {(net(x[test]).argmax(1) == y[test]).float().mean().item():.4f}")
