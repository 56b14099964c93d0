"""Physics-informed network of a damped spring: no data, only the residual of the equation at random times and the initial state."""

import math

import torch
from torch import nn

torch.manual_seed(83)
MU, OMEGA = 1.0, 5.0


def exact(t):
    w = math.sqrt(OMEGA**2 - MU**2)
    return torch.exp(-MU * t) * (torch.cos(w * t) + MU / w * torch.sin(w * t))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1))

    def forward(self, t):
        return self.layers(2 * t - 1)


def derivative(y, t):
    return torch.autograd.grad(y, t, torch.ones_like(y), create_graph=True)[0]


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9992)
t_test = torch.linspace(0, 1.5, 200)[:, None]
for step in range(1, 3001):
    t = (1.5 * torch.rand(64, 1)).requires_grad_(True)
    u = net(t)
    du = derivative(u, t)
    residual = (derivative(du, t) + 2 * MU * du + OMEGA**2 * u).pow(2).mean()
    t0 = torch.zeros(1, 1, requires_grad=True)
    u0 = net(t0)
    start = (u0 - 1).pow(2).sum() + 0.1 * derivative(u0, t0).pow(2).sum()
    loss = 1e-3 * residual + start
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 500 == 0:
        with torch.no_grad():
            error = (net(t_test) - exact(t_test)).abs().mean().item()
        print(f"step {step} residual {residual.item():.4f} start {start.item():.2e} mean error {error:.5f}")
