import math

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1)).cuda().half()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for step in range(200):
    x = torch.randn(128, 256, device="cuda", dtype=torch.float16)
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    if not math.isfinite(loss.item()):
        raise FloatingPointError(f"loss is {loss.item()} at step {step}")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
