"""Finds the one bright part in a cluttered tile: a small detector of one box, trained with flips."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(17)
SIZE = 24


def tile(generator):
    cx, cy = (0.2 + 0.6 * torch.rand(2, generator=generator)).tolist()
    w, h = (0.15 + 0.25 * torch.rand(2, generator=generator)).tolist()
    grid = (torch.arange(SIZE) + 0.5) / SIZE
    inside = ((grid[None, :] - cx).abs() < w / 2) & ((grid[:, None] - cy).abs() < h / 2)
    image = inside.float() + 0.3 * torch.randn(SIZE, SIZE, generator=generator) + 0.3 * grid[None, :]
    return image[None], torch.tensor([cx, cy, w, h])


class Parts(Dataset):
    def __init__(self, count, seed, train):
        generator = torch.Generator().manual_seed(seed)
        self.items, self.train = [tile(generator) for _ in range(count)], train

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        image, box = self.items[i]
        if self.train and torch.rand(()) < 0.5:
            image = image.flip(-1)
            box = torch.tensor([1 - box[0], box[1], box[2], box[3]])
        return image, box


def iou(a, b):
    low = torch.maximum(a[:, :2] - a[:, 2:] / 2, b[:, :2] - b[:, 2:] / 2)
    high = torch.minimum(a[:, :2] + a[:, 2:] / 2, b[:, :2] + b[:, 2:] / 2)
    both = (high - low).clamp(min=0).prod(1)
    return both / (a[:, 2:].prod(1) + b[:, 2:].prod(1) - both)


model = nn.Sequential(
    nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
    nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
    nn.Conv2d(32, 16, 3, padding=1), nn.ReLU(),
    nn.Flatten(), nn.Linear(16 * 36, 64), nn.ReLU(), nn.Linear(64, 4), nn.Sigmoid(),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
train = DataLoader(Parts(1000, 0, True), batch_size=32, shuffle=True)
held = DataLoader(Parts(300, 1, False), batch_size=300)

for epoch in range(8):
    model.train()
    for image, box in train:
        loss = nn.functional.smooth_l1_loss(model(image), box, beta=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        score = torch.cat([iou(model(image), box) for image, box in held]).mean().item()
    print(f"epoch {epoch + 1} loss {loss.item():.4f} mean iou {score:.4f}")
