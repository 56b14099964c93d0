import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(10, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
losses, kept = [], {}
for epoch in range(300):
    for _ in range(200):
        x = torch.randn(64, 10)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    losses.append(loss.item())
    kept[epoch] = float(model.weight.norm())
table = np.array(losses).reshape(30, 10)
print("by tens", table.mean(1))
print("norm at", kept[149], "and at", kept[299])
assert len(kept) == 300
