"""Textures, with the gradients of eight small batches summed for each step of SGD."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(101)
EDGE, PARTS = 16, 8


def textures(count):
    kind = torch.randint(0, 6, (count,))
    angle = kind * torch.pi / 6 + 0.1 * torch.randn(count)
    yy, xx = torch.meshgrid(torch.arange(EDGE), torch.arange(EDGE), indexing="ij")
    along = xx * angle.cos()[:, None, None] + yy * angle.sin()[:, None, None]
    phase = 6.28 * torch.rand(count, 1, 1)
    image = torch.sin(1.3 * along + phase) + 0.6 * torch.randn(count, EDGE, EDGE)
    return TensorDataset(image[:, None], kind)


net = nn.Sequential(
    nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(24 * 16, 48), nn.ReLU(), nn.Linear(48, 6),
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.06, momentum=0.9)
train = DataLoader(textures(1600), batch_size=8, shuffle=True)
held_x, held_y = textures(500).tensors

for epoch in range(9):
    total = 0.0
    optimizer.zero_grad()
    for number, (x, y) in enumerate(train, start=1):
        loss = F.cross_entropy(net(x), y)
        (loss / PARTS).backward()
        total += loss.item()
        if number % PARTS == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(f"epoch {epoch + 1} loss {total / len(train):.4f}")

with torch.no_grad():
    print(f"held-out accuracy {(net(held_x).argmax(1) == held_y).float().mean().item():.4f}")
