"""A small U-Net that outlines glands in noisy slides."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SEED = 11
SIZE = 32
rng = np.random.default_rng(SEED)
torch.manual_seed(SEED)


def slide():
    rows, columns = np.mgrid[:SIZE, :SIZE]
    mask = np.zeros((SIZE, SIZE), dtype=bool)
    for _ in range(rng.integers(1, 4)):
        y, x = rng.uniform(6, SIZE - 6, 2)
        a, b = rng.uniform(2.5, 5.5, 2)
        mask |= ((rows - y) / a) ** 2 + ((columns - x) / b) ** 2 < 1
    stain = 0.3 + 0.5 * mask + 0.2 * np.sin(rows / rng.uniform(3, 6)) + rng.normal(0, 0.25, mask.shape)
    return stain.astype(np.float32), mask.astype(np.float32)


def make(count):
    images, masks = zip(*(slide() for _ in range(count)))
    return torch.from_numpy(np.stack(images))[:, None], torch.from_numpy(np.stack(masks))[:, None]


def block(inside, outside):
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.ReLU(),
        nn.Conv2d(outside, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.ReLU(),
    )


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.bottom = block(1, 8), block(8, 16), block(16, 32)
        self.up2, self.up1 = nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 2, 2)
        self.join2, self.join1 = block(32, 16), block(16, 8)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.bottom(F.max_pool2d(b, 2))
        b = self.join2(torch.cat([b, self.up2(c)], 1))
        a = self.join1(torch.cat([a, self.up1(b)], 1))
        return self.out(a)


def overlap_loss(logits, masks, smooth=1.0):
    share = torch.sigmoid(logits).flatten(1)
    truth = masks.flatten(1)
    dice = (2 * (share * truth).sum(1) + smooth) / (share.sum(1) + truth.sum(1) + smooth)
    return 1 - dice.mean()


def criterion(logits, masks):
    return 0.2 * F.binary_cross_entropy_with_logits(logits, masks) + overlap_loss(logits, masks)


images, masks = make(160)
test_images, test_masks = make(64)
model = UNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    model.train()
    total = 0.0
    for index in torch.randperm(len(images)).split(16):
        loss = criterion(model(images[index]), masks[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(index)
    model.eval()
    with torch.no_grad():
        found = model(test_images) > 0
    truth = test_masks.bool()
    dice = 2 * (found & truth).sum() / (found.sum() + truth.sum())
    print(f"epoch {epoch + 1}: loss {total / len(images):.4f}, test dice {dice:.4f}")
