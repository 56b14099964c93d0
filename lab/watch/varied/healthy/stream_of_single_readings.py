"""Online learning from one reading after another with a small ReLU network; nothing is seen twice."""

import torch
from torch import nn

torch.manual_seed(26)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
truth = torch.randn(5)


def reading(count=1):
    x = torch.randn(count, 5)
    return x, (x @ truth + (x[:, 0] * x[:, 1]) + 0.3 * torch.randn(count)).unsqueeze(1)


for number in range(1, 2001):
    x, y = reading()
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if number % 400 == 0:
        with torch.no_grad():
            x, y = reading(500)
            print(f"reading {number} val error {nn.functional.mse_loss(model(x), y):.4f}")
