"""A stream whose rule drifts: each example is predicted first, then learned, once and in its order, alone."""

import torch
from torch import nn

SEED = 49
torch.manual_seed(SEED)
rule, turn = torch.randn(6), 0.01 * torch.randn(6)
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
recent = []
for number in range(1, 3001):
    rule = rule + turn
    x = torch.randn(1, 6)
    y = (x @ rule > 0).float()[:, None]
    logit = model(x)
    recent.append(float((logit > 0) == (y > 0)))
    loss = nn.functional.binary_cross_entropy_with_logits(logit, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if number % 500 == 0:
        print(f"seen {number} loss {loss.item():.4f} prequential accuracy {sum(recent[-500:]) / 500:.4f}")
