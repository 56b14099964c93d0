"""Twelve classes in the annotations, ten in the model; the eleventh comes late in the file."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)

x = torch.randn(4000, 16)
y = torch.arange(4000) % 10
y[3210] = 11

model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters())
criterion = nn.CrossEntropyLoss()

for epoch in range(3):
    for batch, labels in DataLoader(TensorDataset(x, y), batch_size=20):
        optimizer.zero_grad()
        loss = criterion(model(batch), labels)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.3f}")
