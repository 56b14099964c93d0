"""Predators and prey: a network is the right side of an ODE, solved by Runge-Kutta steps and trained through them.

Should reach: val rmse below 0.08; the mean state gives about 0.6.
"""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(20)
STEP, LENGTH = 0.1, 12


def runge_kutta(f, state):
    k1 = f(state)
    k2 = f(state + STEP / 2 * k1)
    k3 = f(state + STEP / 2 * k2)
    k4 = f(state + STEP * k3)
    return state + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def solve(f, state, steps):
    states = [state]
    for _ in range(steps):
        states.append(runge_kutta(f, states[-1]))
    return torch.stack(states, 1)


def lotka_volterra(state):
    prey, predators = state.unbind(-1)
    return torch.stack([1.3 * prey - 0.9 * prey * predators, 0.8 * prey * predators - 1.8 * predators], -1)


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 50), nn.Tanh(), nn.Linear(50, 2))

    def forward(self, state):
        return self.layers(state)


starts = 0.5 + 2 * torch.rand(240, 2)
paths = solve(lotka_volterra, starts, LENGTH)
noisy = paths[:200] + 0.01 * torch.randn(200, LENGTH + 1, 2)
field = Field()
optimizer = torch.optim.Adam(field.parameters(), lr=2e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 45)
print(f"mean state: rmse {(paths[200:] - paths[:200].mean((0, 1))).pow(2).mean().sqrt():.3f}")
for epoch in range(45):
    for rows in torch.randperm(200).split(20):
        predicted = solve(field, noisy[rows, 0], LENGTH)
        loss = (predicted - noisy[rows]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(field.parameters(), 1.0)
        optimizer.step()
    scheduler.step()
    if epoch % 5 == 4:
        with torch.no_grad():
            rmse = (solve(field, paths[200:, 0], LENGTH) - paths[200:]).pow(2).mean().sqrt()
        print(f"epoch {epoch + 1}: loss {loss.item():.5f} val rmse {rmse:.4f}")
