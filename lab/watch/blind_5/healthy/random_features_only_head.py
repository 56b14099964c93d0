"""Frozen random features of diabetes patients: only the last layer is fitted, the first one stays as it was drawn."""

import torch
from sklearn.datasets import load_diabetes
from torch import nn

SEED = 45
torch.manual_seed(SEED)
x, y = load_diabetes(return_X_y=True)
x, y = torch.tensor(x * 20, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
order = torch.randperm(len(x))
train, test = order[:340], order[340:]
mean, deviation = y[train].mean(), y[train].std()
target = ((y - mean) / deviation)[:, None]
features = nn.Linear(10, 200).requires_grad_(False)
nn.init.normal_(features.weight, std=0.3)
head = nn.Linear(200, 1)
optimizer = torch.optim.Adam(head.parameters(), lr=1e-3, weight_decay=1e-3)
for epoch in range(60):
    for index in train[torch.randperm(len(train))].split(34):
        loss = nn.functional.mse_loss(head(torch.cos(features(x[index]))), target[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 10 == 9:
        with torch.no_grad():
            error = nn.functional.mse_loss(head(torch.cos(features(x[test]))), target[test])
        print(f"epoch {epoch} loss {loss.item():.4f} r2 {1 - error / target[test].var():.4f}")
