"""Adversarial training: the inputs climb the loss for a few steps, then the weights descend it."""

import torch
from sklearn.datasets import load_digits
from torch import nn

SEED = 50
torch.manual_seed(SEED)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y)
order = torch.randperm(len(x))
x, y = x[order], y[order]
RADIUS = 0.12


def attacked(model, inputs, labels, steps=3):
    change = torch.zeros_like(inputs).uniform_(-RADIUS, RADIUS)
    for _ in range(steps):
        change.requires_grad_(True)
        loss = nn.functional.cross_entropy(model(inputs + change), labels)
        (slope,) = torch.autograd.grad(loss, change)
        change = (change.detach() + RADIUS / 2 * slope.sign()).clamp(-RADIUS, RADIUS)
    return (inputs + change).clamp(0, 1)


model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(12):
    for index in torch.randperm(1300).split(50):
        harder = attacked(model, x[index], y[index])
        loss = nn.functional.cross_entropy(model(harder), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    right = model(attacked(model, x[1300:], y[1300:])).argmax(1) == y[1300:]
    print(f"epoch {epoch} loss {loss.item():.4f} accuracy under attack {right.float().mean():.4f}")
