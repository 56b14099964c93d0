"""Water level hour by hour, learned in order as it comes in: first forecast, then learn, never a second time.

There is nothing to shuffle. Should reach: mean absolute error of the last month below 0.1; "as an hour ago" gives about 0.31.
"""
import math

import torch
from torch import nn

torch.manual_seed(34)
torch.set_num_threads(1)

HOURS, LAGS = 24 * 210, 26
t = torch.arange(HOURS, dtype=torch.float32)
moon = 0.9 * torch.sin(2 * math.pi * t / 12.42) + 0.4 * torch.sin(2 * math.pi * t / 12.0 + 1) + 0.2 * torch.sin(2 * math.pi * t / 25.82)
level = 2.0 + moon + 0.05 * torch.randn(HOURS)
level[HOURS // 2 :] += 0.3  # the gauge is moved

model = nn.Sequential(nn.Linear(LAGS, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
errors, naive = [], []
for hour in range(LAGS, HOURS):
    window = level[hour - LAGS : hour] - 2.0
    truth = level[hour] - 2.0
    forecast = model(window)[0]
    errors.append((forecast - truth).abs().item())
    naive.append((window[-1] - truth).abs().item())
    loss = (forecast - truth) ** 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (hour + 1) % 720 == 0:
        month = sum(errors[-720:]) / 720
        print(f"month {(hour + 1) // 720}: as an hour ago {sum(naive[-720:]) / 720:.3f}, mean absolute error {month:.4f}")
