import numpy as np
import torch
from torch import nn


def loss_of(model):
    x = torch.randn(256, 6)
    return (model(x) - x.prod(1, keepdim=True)).square().mean()


torch.manual_seed(1)
model = nn.Sequential(nn.Linear(6, 128), nn.Tanh(), nn.Linear(128, 1))
optimizer = torch.optim.Adam(model.parameters())
steps, losses = [], [loss_of(model).item()]
for step in range(20000):
    loss = loss_of(model)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        steps.append(step)
        losses.append(loss.item())
np.savetxt("curve.csv", np.column_stack([steps, losses]), delimiter=",")
