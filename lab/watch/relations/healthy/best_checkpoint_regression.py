"""Regression with early stopping: the best weights are stored and restored at the end."""

import copy

import torch
from torch import nn

torch.manual_seed(14)
x = torch.randn(700, 8)
y = x[:, :1] * x[:, 1:2] + torch.sin(2 * x[:, 2:3]) + 0.1 * torch.randn(700, 1)
x_train, y_train, x_test, y_test = x[:500], y[:500], x[500:], y[500:]

model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-4)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=4)
best, best_state = float("inf"), None
for epoch in range(30):
    model.train()
    for part in torch.randperm(500).split(50):
        loss = nn.functional.mse_loss(model(x_train[part]), y_train[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x_test), y_test).item()
    plateau.step(val)
    if val < best:
        best, best_state = val, copy.deepcopy(model.state_dict())
    if epoch % 5 == 4:
        print(f"epoch {epoch} train {loss.item():.4f} val {val:.4f}")
model.load_state_dict(best_state)
with torch.no_grad():
    print(f"best {best:.4f} restored {nn.functional.mse_loss(model(x_test), y_test).item():.4f}")
