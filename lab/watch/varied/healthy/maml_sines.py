"""Meta-learning of sine curves: an inner step with autograd.grad, the outer loss through it."""

import torch
from torch import nn

torch.manual_seed(36)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)


def task():
    size, phase = 0.5 + torch.rand(1) * 2, torch.rand(1) * 3
    def draw():
        x = torch.rand(12, 1) * 8 - 4
        return x, size * torch.sin(x + phase)
    return draw


def adapted(draw, create_graph):
    names = dict(model.named_parameters())
    x, y = draw()
    loss = nn.functional.mse_loss(torch.func.functional_call(model, names, (x,)), y)
    gradients = torch.autograd.grad(loss, list(names.values()), create_graph=create_graph)
    return {n: p - 0.05 * g for (n, p), g in zip(names.items(), gradients, strict=True)}


average = 3.0
for step in range(1, 401):
    loss = 0.0
    for _ in range(4):
        draw = task()
        weights = adapted(draw, True)
        x, y = draw()
        loss = loss + nn.functional.mse_loss(torch.func.functional_call(model, weights, (x,)), y) / 4
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average = 0.98 * average + 0.02 * loss.item()
    if step % 100 == 0:
        print(f"step {step} running error {average:.4f}")
