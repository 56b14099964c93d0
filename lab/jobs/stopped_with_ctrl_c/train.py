import time

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
data, target = torch.randn(640, 32), torch.randn(640, 1)
for epoch in range(100):
    for i, (x, y) in enumerate(zip(data.split(32), target.split(32))):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"\rEpoch {epoch}: {100 * (i + 1) // 20:3d}%|{'█' * (i + 1):<20}| {i + 1}/20 loss={loss.item():.3f}", end="", flush=True)
        time.sleep(0.02)
    print()
