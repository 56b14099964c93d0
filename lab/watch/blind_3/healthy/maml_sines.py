"""First-order meta-learning of sine waves: the inner loop uses functional_call on adapted copies, the outer loop steps the shared start."""

import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(97)
INNER_LR, INNER_STEPS, TASKS, SHOTS = 0.02, 3, 8, 10


def task():
    amplitude, phase = 0.5 + 2.0 * torch.rand(()), torch.pi * torch.rand(())
    def points(n):
        x = 10 * torch.rand(n, 1) - 5
        return x, amplitude * torch.sin(x + phase)
    return points


net = nn.Sequential(nn.Linear(1, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
mse = nn.functional.mse_loss


def adapt(parameters, x, y, steps=INNER_STEPS):
    for _ in range(steps):
        loss = mse(functional_call(net, parameters, (x,)), y)
        grads = torch.autograd.grad(loss, list(parameters.values()))
        parameters = {name: p - INNER_LR * g for (name, p), g in zip(parameters.items(), grads)}
    return parameters


def evaluate(count=60):
    before, after = 0.0, 0.0
    generator_state = torch.get_rng_state()
    torch.manual_seed(1)
    for _ in range(count):
        points = task()
        (xs, ys), (xq, yq) = points(SHOTS), points(100)
        start = {k: v.detach().requires_grad_(True) for k, v in net.named_parameters()}
        fitted = adapt(start, xs, ys, steps=8)
        with torch.no_grad():
            before += mse(functional_call(net, start, (xq,)), yq).item() / count
            after += mse(functional_call(net, fitted, (xq,)), yq).item() / count
    torch.set_rng_state(generator_state)
    return before, after


meta = torch.optim.Adam(net.parameters(), lr=1e-3)
for iteration in range(1, 701):
    meta.zero_grad()
    outer = 0.0
    for _ in range(TASKS):
        points = task()
        fitted = adapt(dict(net.named_parameters()), *points(SHOTS))
        x, y = points(SHOTS)
        loss = mse(functional_call(net, fitted, (x,)), y) / TASKS
        loss.backward()
        outer += loss.item()
    meta.step()
    if iteration % 100 == 0:
        before, after = evaluate()
        print(f"iteration {iteration} outer {outer:.4f} before {before:.4f} after {after:.4f}")
