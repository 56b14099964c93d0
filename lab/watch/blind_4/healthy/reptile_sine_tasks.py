"""Reptile: an initialisation from which a few steps fit any sine; the loss of each task jumps up and down."""

import copy

import torch
from torch import nn

torch.manual_seed(61)


def task():
    amplitude, phase = 1 + 3 * torch.rand(()), 3 * torch.rand(())
    return lambda count: (lambda x: (x, amplitude * torch.sin(x + phase)))(10 * torch.rand(count, 1) - 5)


def adapt(net, x, y, steps, lr=0.02):
    optimizer = torch.optim.SGD(net.parameters(), lr=lr)
    for _ in range(steps):
        loss = (net(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def score(net):
    torch.manual_seed(0)
    errors = []
    for _ in range(40):
        draw, learner = task(), copy.deepcopy(net)
        adapt(learner, *draw(10), steps=16)
        with torch.no_grad():
            x, y = draw(100)
            errors.append((learner(x) - y).pow(2).mean().item())
    return sum(errors) / len(errors)


meta = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
print(f"before: error after adaptation {score(meta):.4f}")
torch.manual_seed(62)
OUTER = 700
for outer in range(OUTER):
    learner = copy.deepcopy(meta)
    last = adapt(learner, *task()(20), steps=6)
    rate = 0.3 * (1 - outer / OUTER)
    with torch.no_grad():
        for slow, fast in zip(meta.parameters(), learner.parameters()):
            slow += rate * (fast - slow)
    if outer % 140 == 139:
        print(f"task {outer + 1} loss after adaptation {last:.4f}")
print(f"after: error after adaptation {score(meta):.4f}")
