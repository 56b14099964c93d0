"""L-BFGS with a closure fits the swing of a damped pendulum from noisy measurements, all at once.

Should reach: test R2 of at least 0.95.
"""

import torch
import torch.nn as nn

torch.manual_seed(0)
torch.set_num_threads(1)


def measure(count, noise):
    """Time (s), first angle (rad) and damping give the angle."""
    time = 6 * torch.rand(count)
    angle = 0.2 + 0.8 * torch.rand(count)
    damping = 0.1 + 0.4 * torch.rand(count)
    swing = angle * torch.exp(-damping * time) * torch.cos(2.2 * time)
    x = torch.stack([time / 3 - 1, (angle - 0.6) / 0.23, (damping - 0.3) / 0.115], 1)
    return x, (swing + noise * torch.randn(count)).unsqueeze(1)


x_train, y_train = measure(600, noise=0.03)
x_test, y_test = measure(300, noise=0.0)

model = nn.Sequential(nn.Linear(3, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=1.0, max_iter=5, history_size=20, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x_train), y_train)
    loss = loss + 1e-6 * sum((p**2).sum() for p in model.parameters())
    loss.backward()
    return loss


for step in range(1, 81):
    loss = optimizer.step(closure)
    if step % 10 == 0:
        with torch.no_grad():
            residual = y_test - model(x_test)
            r2 = 1 - (residual**2).mean() / y_test.var()
        print(f"step {step}: loss {loss.item():.5f}, test R2 {r2.item():.4f}")
