"""A whole step as one compiled function: forward, loss and gradients by torch.func, the update by the optimizer."""

import torch
from torch import nn
from torch.func import functional_call, grad_and_value

torch.manual_seed(24)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(6, 48), nn.Tanh(), nn.Linear(48, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def loss_of(parameters, x, y):
    return nn.functional.mse_loss(functional_call(model, parameters, (x,)).squeeze(1), y)


step_of = torch.compile(grad_and_value(loss_of), backend="eager")


def batch(count):
    x = torch.rand(count, 6)
    return x, torch.sin(torch.pi * x[:, 0] * x[:, 1]) + 2 * (x[:, 2] - 0.5) ** 2 + x[:, 3]


for step in range(1, 501):
    x, y = batch(64)
    parameters = dict(model.named_parameters())
    gradients, loss = step_of({name: p.detach() for name, p in parameters.items()}, x, y)
    for name, parameter in parameters.items():
        parameter.grad = gradients[name]
    optimizer.step()
    if step % 100 == 0:
        with torch.no_grad():
            x, y = batch(500)
            print(f"step {step} val error {nn.functional.mse_loss(model(x).squeeze(1), y):.5f}")
