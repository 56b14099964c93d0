"""Several tags a parcel: each of eight tags is true or not, by the weights of what was scanned."""

import torch
from torch import nn

SEED = 42
torch.manual_seed(SEED)
rules = torch.randn(30, 8)


def parcels(count):
    scans = torch.randn(count, 30)
    return scans, (scans @ rules / 5.5 + 0.1 * torch.randn(count, 8) > 0.35).float()


def f1(logits, tags):
    said = logits > 0
    hits = (said & (tags > 0)).sum()
    return 2 * hits / (said.sum() + tags.sum())


train_x, train_y = parcels(2000)
test_x, test_y = parcels(500)
model = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 8))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(40):
    for index in torch.randperm(len(train_x)).split(50):
        loss = criterion(model(train_x[index]), train_y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 4 == 3:
        with torch.no_grad():
            print(f"epoch {epoch} loss {loss.item():.4f} micro f1 {f1(model(test_x), test_y):.4f}")
