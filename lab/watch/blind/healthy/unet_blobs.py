"""Segments discs and squares with a small U-Net, random flips and a Dice plus cross-entropy loss."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(17)
SIZE = 24


class Shapes(Dataset):
    """Images with a disc (class 1, left half) and a square (class 2, right half)."""

    def __init__(self, n, train):
        self.train = train
        grid = torch.arange(SIZE)
        self.masks = torch.zeros(n, SIZE, SIZE, dtype=torch.long)
        for m in self.masks:
            cy, cx = torch.randint(5, SIZE - 5, (1,)), torch.randint(4, SIZE // 2, (1,))
            m[(grid[:, None] - cy) ** 2 + (grid[None] - cx) ** 2 < 14] = 1
            y, x = torch.randint(0, SIZE - 7, (1,)), torch.randint(SIZE // 2, SIZE - 7, (1,))
            m[y:y + 6, x:x + 6] = 2
        self.images = torch.where(self.masks > 0, 0.7, 0.2)[:, None] + 0.2 * torch.randn(n, 1, SIZE, SIZE)

    def __len__(self):
        return len(self.masks)

    def __getitem__(self, i):
        image, mask = self.images[i], self.masks[i]
        if self.train and torch.rand(1) < 0.5:
            image, mask = image.flip(-2), mask.flip(-2)
        return image, mask


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc1, self.enc2, self.mid = block(1, 8), block(8, 16), block(16, 16)
        self.dec2, self.dec1 = block(32, 8), block(16, 8)
        self.up = nn.Upsample(scale_factor=2)
        self.head = nn.Conv2d(8, 3, 1)

    def forward(self, x):
        a = self.enc1(x)
        b = self.enc2(F.max_pool2d(a, 2))
        c = self.mid(F.max_pool2d(b, 2))
        d = self.dec2(torch.cat([self.up(c), b], 1))
        return self.head(self.dec1(torch.cat([self.up(d), a], 1)))


def dice_ce(logits, target):
    probs = logits.softmax(dim=1)
    hot = F.one_hot(target, 3).permute(0, 3, 1, 2).float()
    overlap = 2 * (probs * hot).sum((0, 2, 3)) / ((probs + hot).sum((0, 2, 3)) + 1e-6)
    return F.cross_entropy(logits, target) + 1 - overlap.mean()


def iou(model, loader):
    model.eval()
    both, either = torch.zeros(3), torch.zeros(3)
    with torch.no_grad():
        for image, mask in loader:
            guess = model(image).argmax(1)
            for k in range(3):
                both[k] += ((guess == k) & (mask == k)).sum()
                either[k] += ((guess == k) | (mask == k)).sum()
    return (both / either.clamp(min=1)).mean().item()


train = DataLoader(Shapes(320, True), batch_size=16, shuffle=True)
val = DataLoader(Shapes(100, False), batch_size=50)
model = UNet()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    model.train()
    for image, mask in train:
        loss = dice_ce(model(image), mask)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"epoch {epoch} loss {loss.item():.4f} mIoU {iou(model, val):.4f}")
