import pathlib
import time

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(16, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x = torch.randn(256, 16)
y = x[:, :4].argmax(1)
for epoch in range(8):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"Epoch {epoch + 1}/8 loss {loss.item():.4f}", flush=True)
    pathlib.Path(f"epoch_{epoch}").touch()
    time.sleep(0.2)
