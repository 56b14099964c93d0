import math

import torch
from torch import nn
from torch.func import functional_call

TASKS, INNER, LR = 4, 2, 0.01


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU())
        self.head = nn.Linear(40, 1)
        self.log_variance = nn.Linear(40, 1)

    def forward(self, x, uncertain=False):
        features = self.body(x)
        if uncertain:
            return self.head(features), self.log_variance(features)
        return self.head(features)


def task():
    amplitude, phase = 0.1 + 4.9 * torch.rand(1), math.pi * torch.rand(1)
    x = 10 * torch.rand(20, 1) - 5
    return x, amplitude * torch.sin(x + phase)


def adapt(model, weights, x, y):
    for _ in range(INNER):
        loss = nn.functional.mse_loss(functional_call(model, weights, (x,)), y)
        gradients = torch.autograd.grad(loss, tuple(weights.values()), create_graph=True)
        weights = {name: w - LR * g for (name, w), g in zip(weights.items(), gradients)}
    return weights


def main():
    torch.manual_seed(0)
    model = Regressor()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for iteration in range(500):
        outer = 0.0
        for _ in range(TASKS):
            x, y = task()
            weights = adapt(model, dict(model.named_parameters()), x[:10], y[:10])
            outer = outer + nn.functional.mse_loss(functional_call(model, weights, (x[10:],)), y[10:])
        optimizer.zero_grad()
        (outer / TASKS).backward()
        optimizer.step()
        if iteration % 50 == 0:
            print(iteration, outer.item() / TASKS)


main()
