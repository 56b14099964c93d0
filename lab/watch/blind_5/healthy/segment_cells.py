"""Segmentation of bright cells on an uneven ground with a small convolutional network and random mirroring."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SEED = 24
random.seed(SEED)
torch.manual_seed(SEED)
rows, columns = torch.meshgrid(torch.arange(24.0), torch.arange(24.0), indexing="ij")


def scene():
    mask = torch.zeros(24, 24)
    for _ in range(random.randrange(1, 4)):
        centre, radius = torch.rand(2) * 18 + 3, 2 + 2 * torch.rand(1)
        mask[(rows - centre[0]) ** 2 + (columns - centre[1]) ** 2 < radius**2] = 1
    image = 0.8 * mask + columns / 24 + 0.3 * torch.randn(24, 24)
    return image[None], mask[None]


class Cells(Dataset):
    def __init__(self, count, mirror):
        self.scenes, self.mirror = [scene() for _ in range(count)], mirror

    def __len__(self):
        return len(self.scenes)

    def __getitem__(self, index):
        image, mask = self.scenes[index]
        if self.mirror:
            axes = [axis for axis in (1, 2) if random.random() < 0.5]
            image = image.flip(axes)
            mask = mask.flip(axes)
        return image, mask


model = nn.Sequential(
    nn.Conv2d(1, 12, 5, padding=2), nn.ReLU(), nn.Conv2d(12, 12, 5, padding=2), nn.ReLU(), nn.Conv2d(12, 1, 1)
)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
train = DataLoader(Cells(240, mirror=True), batch_size=16, shuffle=True)
held = DataLoader(Cells(80, mirror=False), batch_size=80)
for epoch in range(12):
    for images, masks in train:
        logits = model(images)
        share = torch.sigmoid(logits)
        dice = 1 - (2 * (share * masks).sum((1, 2, 3)) + 1) / (share.sum((1, 2, 3)) + masks.sum((1, 2, 3)) + 1)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, masks) + dice.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        images, masks = next(iter(held))
        found = model(images) > 0
        overlap = (found & (masks > 0)).sum() / (found | (masks > 0)).sum()
    print(f"epoch {epoch} loss {loss.item():.4f} iou {overlap:.4f}")
