"""Physics-informed network for a damped oscillator: no data, only the equation and the initial conditions."""

import math

import torch
from torch import nn

torch.manual_seed(83)
DAMP, OMEGA = 0.3, 2.0
net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9995)
zero = torch.zeros(1, 1, requires_grad=True)


def derivative(y, t):
    return torch.autograd.grad(y, t, torch.ones_like(y), create_graph=True)[0]


def exact(t):
    w = math.sqrt(OMEGA**2 - DAMP**2)
    return torch.exp(-DAMP * t) * (torch.cos(w * t) + DAMP / w * torch.sin(w * t))


test_t = torch.linspace(0, 4, 200)[:, None]
for step in range(1, 3001):
    t = (torch.rand(64, 1) * 4).requires_grad_(True)
    y = net(t)
    dy = derivative(y, t)
    d2y = derivative(dy, t)
    residual = (d2y + 2 * DAMP * dy + OMEGA**2 * y).pow(2).mean()
    y0 = net(zero)
    boundary = (y0 - 1).pow(2).mean() + derivative(y0, zero).pow(2).mean()
    loss = residual + 20 * boundary
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 300 == 0:
        with torch.no_grad():
            error = (net(test_t) - exact(test_t)).pow(2).mean().sqrt().item()
        print(f"step {step} residual {residual.item():.5f} boundary {boundary.item():.5f} error {error:.5f}")
