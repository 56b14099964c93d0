"""Churn of customers: the rare class is repeated, the epoch with the best validation loss is used."""

import copy

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from torch import nn

torch.manual_seed(31)
rng = np.random.default_rng(31)
x = rng.normal(size=(2400, 20)).astype("float32")
score = x[:, 0] + 0.7 * x[:, 1] * x[:, 2] + 1.2 * rng.normal(size=2400)
y = (score > 1.6).astype("int64")
x_rest, x_test, y_rest, y_test = train_test_split(x, y, test_size=0.4, random_state=0, stratify=y)


def repeat_rare(a, b):
    rare = np.flatnonzero(b == 1)
    extra = rng.choice(rare, size=(b == 0).sum() - len(rare))
    return np.concatenate([a, a[extra]]), np.concatenate([b, b[extra]])


x_train, x_valid, y_train, y_valid = train_test_split(x_rest, y_rest, test_size=0.3, random_state=1)
x_train, y_train = repeat_rare(x_train, y_train)
x_valid, y_valid = repeat_rare(x_valid, y_valid)
xt, yt, xv, yv = map(torch.tensor, (x_train, y_train, x_valid, y_valid))
print(f"{len(xt)} training rows, {len(xv)} validation rows")

net = nn.Sequential(nn.Linear(20, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
best, best_state = float("inf"), None
for epoch in range(40):
    for rows in torch.randperm(len(xt)).split(64):
        loss = F.cross_entropy(net(xt[rows]), yt[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        valid = F.cross_entropy(net(xv), yv).item()
    if valid < best:
        best, best_state, best_epoch = valid, copy.deepcopy(net.state_dict()), epoch
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1} train {loss.item():.4f} valid {valid:.4f}")

net.load_state_dict(best_state)
with torch.no_grad():
    chance = F.softmax(net(torch.tensor(x_test)), 1).numpy()
weight = np.where(y_test == 1, (y_test == 0).sum() / (y_test == 1).sum(), 1.0)
print(f"best epoch {best_epoch + 1} balanced test loss {log_loss(y_test, chance, sample_weight=weight):.4f}")
