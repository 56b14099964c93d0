"""Digits with mixed images and smoothed labels: the training loss stays high although the network is good."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.distributions import Beta

torch.manual_seed(83)
digits = load_digits()
x = torch.tensor(digits.images / 16.0, dtype=torch.float32)[:, None]
y = torch.tensor(digits.target)
order = torch.randperm(len(x))
train, test = order[:1200], order[1200:]

net = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10),
)
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
blend = Beta(0.4, 0.4)
EPOCHS = 8
for epoch in range(EPOCHS):
    total = 0.0
    for rows in train[torch.randperm(len(train))].split(48):
        share = blend.sample().item()
        other = rows[torch.randperm(len(rows))]
        out = net(share * x[rows] + (1 - share) * x[other])
        first = F.cross_entropy(out, y[rows], label_smoothing=0.2)
        second = F.cross_entropy(out, y[other], label_smoothing=0.2)
        loss = share * first + (1 - share) * second
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch + 1} loss {total / 25:.4f}")

with torch.no_grad():
    print(f"test accuracy {(net(x[test]).argmax(1) == y[test]).float().mean().item():.4f}")
