"""One label too high among many, met at another step in each run."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)

x, y = torch.randn(3000, 12), torch.randint(6, (3000,))
y[17] = 6
model = nn.Sequential(nn.Linear(12, 32), nn.Dropout(0.2), nn.ReLU(), nn.Linear(32, 6))
optimizer = torch.optim.AdamW(model.parameters())
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 300)
for x_batch, y_batch in DataLoader(TensorDataset(x, y), batch_size=10, shuffle=True):
    loss = nn.functional.cross_entropy(model(x_batch), y_batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
print(loss.item())
