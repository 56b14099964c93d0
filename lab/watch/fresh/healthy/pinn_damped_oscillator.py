"""A damped spring from its equation alone: no data but the start, derivatives by autograd, Adam and then L-BFGS.

Should reach: largest error below 0.03 (the motion has a height of 1).
"""

import math

import torch
from torch import nn

torch.manual_seed(19)
torch.set_num_threads(1)
DAMPING, STIFFNESS, END = 0.4, 9.0, 3.0


def truth(t):
    omega = math.sqrt(STIFFNESS - DAMPING**2 / 4)
    return torch.exp(-DAMPING * t / 2) * (torch.cos(omega * t) + DAMPING / 2 / omega * torch.sin(omega * t))


net = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))


def derivative(y, t):
    return torch.autograd.grad(y, t, torch.ones_like(y), create_graph=True)[0]


def physics(t):
    t = t.clone().requires_grad_(True)
    # Position 1 and speed 0 at the start hold by construction.
    y = 1 + (t / END) ** 2 * net(2 * t / END - 1) * 10
    dy = derivative(y, t)
    residual = derivative(dy, t) + DAMPING * dy + STIFFNESS * y
    return (residual**2).mean()


def largest_error():
    t = torch.linspace(0, END, 200)[:, None]
    with torch.no_grad():
        return (1 + (t / END) ** 2 * net(2 * t / END - 1) * 10 - truth(t)).abs().max().item()


adam = torch.optim.Adam(net.parameters(), lr=2e-3)
for step in range(801):
    loss = physics(torch.rand(100, 1) * END)
    adam.zero_grad()
    loss.backward()
    adam.step()
    if step % 100 == 0:
        print(f"adam {step:5d} residual {loss.item():.4f} largest error {largest_error():.4f}")

lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=20, line_search_fn="strong_wolfe")
points = torch.linspace(0, END, 150)[:, None]


def closure():
    lbfgs.zero_grad()
    loss = physics(points)
    loss.backward()
    return loss


for step in range(8):
    loss = lbfgs.step(closure)
    print(f"lbfgs {step:4d} residual {loss.item():.6f} largest error {largest_error():.4f}")
