"""Rare defects of parts, with class weights and recall as the metric."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(41)
defect = (torch.rand(3000) < 0.08).long()
readings = torch.randn(3000, 16) + 1.4 * defect[:, None] * torch.randn(16)
train = TensorDataset(readings[:2400], defect[:2400])
counts = torch.bincount(defect[:2400]).float()
weights = counts.sum() / (2 * counts)

model = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 2))
criterion = nn.CrossEntropyLoss(weight=weights)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
for epoch in range(8):
    model.train()
    for x, y in DataLoader(train, batch_size=48, shuffle=True, drop_last=True):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        guess = model(readings[2400:]).argmax(1)
    found = guess[defect[2400:] == 1].float().mean()
    false = guess[defect[2400:] == 0].float().mean()
    print(f"epoch {epoch} loss {loss.item():.3f} found {found.item():.3f} false {false.item():.3f}")
