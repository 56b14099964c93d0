"""Time series: a GRU predicts the next level of a well from the window before it."""

import numpy as np
import torch
from torch import nn

SEED = 26
torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)
WINDOW = 24
level = np.zeros(1500)
for t in range(2, 1500):
    level[t] = 1.7 * level[t - 1] - 0.85 * level[t - 2] + 0.25 * rng.standard_normal() + 0.5 * (t % 12 == 0)
mean, deviation = level[:1100].mean(), level[:1100].std()
level = torch.tensor((level - mean) / deviation, dtype=torch.float32)


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 24, batch_first=True)
        self.out = nn.Linear(24, 1)

    def forward(self, x):
        states, _ = self.gru(x[..., None])
        return self.out(states[:, -1]).squeeze(-1)


def windows(start, end):
    return torch.stack([level[t : t + WINDOW] for t in range(start, end - WINDOW)])


def following(start, end):
    return torch.stack([level[t + WINDOW] for t in range(start, end - WINDOW)])


model = Forecast()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
inputs, targets = windows(0, 1100), following(0, 1100)
for epoch in range(14):
    for index in torch.randperm(len(inputs)).split(32):
        loss = nn.functional.mse_loss(model(inputs[index]), targets[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
with torch.no_grad():
    predicted = model(windows(1100, 1500))
error = (predicted - level[1100 + WINDOW : 1500]).pow(2).mean().sqrt()
print(f"test rmse {error:.4f}")
