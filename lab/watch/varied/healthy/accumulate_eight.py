"""Gradients of eight small batches are gathered for each step; the loss is divided, zero_grad comes after the step."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(37)
torch.set_num_threads(1)
centers = torch.randn(6, 20) * 1.2
y = torch.randint(6, (2400,))
x = centers[y] + torch.randn(2400, 20)
model = nn.Sequential(nn.Linear(20, 64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, 6))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
loader = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=4, shuffle=True)
for epoch in range(2):
    model.train()
    for number, (a, b) in enumerate(loader, 1):
        (nn.functional.cross_entropy(model(a), b) / 8).backward()
        if number % 8 == 0 or number == len(loader):
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        print(f"epoch {epoch} val accuracy {(model(x[2000:]).argmax(1) == y[2000:]).float().mean():.4f}")
