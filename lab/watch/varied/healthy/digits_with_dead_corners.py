"""Flattened digits with every fourth pixel always zero, pixel values divided by the largest, no centering."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(18)
torch.set_num_threads(1)
digits = load_digits()
x = torch.zeros(len(digits.data), 96)
x[:, :64] = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
order = torch.randperm(len(x))
train, test = order[:1300], order[1300:]
model = nn.Sequential(nn.Linear(96, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(5):
    for rows in train[torch.randperm(len(train))].split(64):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(f"epoch {epoch} loss {loss.item():.4f} test accuracy {(model(x[test]).argmax(1) == y[test]).float().mean():.4f}")
