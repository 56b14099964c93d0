"""Shapes with the validation images sorted by class: its first batch has the bright class only."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(28)
torch.set_num_threads(1)


def images(count):
    labels = torch.randint(4, (count,))
    light = labels.float()[:, None, None, None] * 0.5
    bars = torch.zeros(count, 1, 8, 8)
    bars[labels % 2 == 0, :, 3] = 1.0
    return light + bars + 0.4 * torch.randn(count, 1, 8, 8) - 0.75, labels


x, y = images(1600)
xv, yv = images(400)
order = yv.argsort(descending=True)
train = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
val = DataLoader(TensorDataset(xv[order], yv[order]), batch_size=64)
model = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(576, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(5):
    model.train()
    for images_of, labels in train:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images_of), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(a).argmax(1) == b).sum().item() for a, b in val)
    print(f"epoch {epoch} loss {loss.item():.3f} val accuracy {right / len(xv):.4f}")
