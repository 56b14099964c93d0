"""Segments three kinds of fields in four-channel tiles, whose channels have their own offsets and gains."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(19)
SIZE = 16
OFFSET = torch.tensor([90.0, 110.0, 70.0, 240.0]).view(1, 4, 1, 1)
GAIN = torch.tensor([8.0, 10.0, 6.0, 30.0]).view(1, 4, 1, 1)
SPECTRA = torch.tensor([[0.0, 0.5, -0.8, 1.0], [0.8, -0.4, 0.2, -0.6], [-0.7, 0.0, 0.7, 0.0]])


def tiles(count):
    coarse = torch.randn(count, 3, 4, 4)
    kind = F.interpolate(coarse, size=SIZE, mode="bilinear").argmax(1)
    signal = SPECTRA[kind].permute(0, 3, 1, 2) + 0.9 * torch.randn(count, 4, SIZE, SIZE)
    return OFFSET + GAIN * signal, kind


train_x, train_y = tiles(400)
held_x, held_y = tiles(120)
mean, std = train_x.mean((0, 2, 3), keepdim=True), train_x.std((0, 2, 3), keepdim=True)
train_x = (train_x - mean) / std
held_x = (held_x - mean) / std


class Segmenter(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(4, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=2, dilation=2), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
        )
        self.out = nn.Conv2d(width, 3, 1)

    def forward(self, x):
        return self.out(self.body(x))


def dice_loss(logits, kind):
    share = logits.softmax(1)
    wanted = F.one_hot(kind, 3).permute(0, 3, 1, 2).float()
    overlap = (share * wanted).sum((0, 2, 3))
    return 1 - (2 * overlap / (share.sum((0, 2, 3)) + wanted.sum((0, 2, 3)))).mean()


model = Segmenter()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    model.train()
    for rows in torch.randperm(400).split(16):
        logits = model(train_x[rows])
        loss = F.cross_entropy(logits, train_y[rows]) + dice_loss(logits, train_y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        guess = model(held_x).argmax(1)
    both = torch.stack([((guess == k) & (held_y == k)).sum() / ((guess == k) | (held_y == k)).sum() for k in range(3)])
    print(f"epoch {epoch + 1} loss {loss.item():.4f} mean iou {both.mean().item():.4f}")
