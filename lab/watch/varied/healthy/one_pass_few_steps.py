"""One pass over a small table in thirty steps with a one-cycle rate: short, and enough."""

import torch
from torch import nn

torch.manual_seed(32)
torch.set_num_threads(1)
truth = torch.randn(8)
x = torch.randn(960, 8)
y = (x @ truth > 0).long()
xv = torch.randn(300, 8)
yv = (xv @ truth > 0).long()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-2, total_steps=30)
for rows in torch.randperm(960).split(32):
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
with torch.no_grad():
    output = model(xv)
print(f"loss {loss.item():.3f} val loss {nn.functional.cross_entropy(output, yv):.3f} val accuracy {(output.argmax(1) == yv).float().mean():.4f}")
