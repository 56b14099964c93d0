"""Segments bright cells in noisy microscope tiles with a small U-Net; cross entropy plus Dice."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZE = 32


def draw_tile(generator):
    yy, xx = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    mask = torch.zeros(SIZE, SIZE)
    for _ in range(int(torch.randint(2, 5, (), generator=generator))):
        cy, cx, a, b, angle = torch.rand(5, generator=generator).tolist()
        cy, cx, a, b, angle = cy * SIZE, cx * SIZE, 2.5 + 3 * a, 1.5 + 2 * b, math.pi * angle
        u = (xx - cx) * math.cos(angle) + (yy - cy) * math.sin(angle)
        v = (yy - cy) * math.cos(angle) - (xx - cx) * math.sin(angle)
        mask[(u / a) ** 2 + (v / b) ** 2 < 1] = 1
    shade = 0.4 * yy / SIZE
    image = 0.7 * mask + shade + 0.45 * torch.randn(SIZE, SIZE, generator=generator)
    return image[None], mask[None]


class Tiles(Dataset):
    def __init__(self, count, seed, augment=False):
        generator = torch.Generator().manual_seed(seed)
        self.tiles = [draw_tile(generator) for _ in range(count)]
        self.augment = augment

    def __len__(self):
        return len(self.tiles)

    def __getitem__(self, index):
        image, mask = self.tiles[index]
        if self.augment:
            if torch.rand(()) < 0.5:
                image, mask = image.flip(-1), mask.flip(-1)
            if torch.rand(()) < 0.5:
                image, mask = image.flip(-2), mask.flip(-2)
        return image, mask


def double_conv(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(),
    )


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down1 = double_conv(1, width)
        self.down2 = double_conv(width, 2 * width)
        self.bottom = double_conv(2 * width, 2 * width)
        self.up2 = double_conv(4 * width, width)
        self.up1 = double_conv(2 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        d1 = self.down1(x)
        d2 = self.down2(F.max_pool2d(d1, 2))
        b = self.bottom(F.max_pool2d(d2, 2))
        u2 = self.up2(torch.cat([F.interpolate(b, scale_factor=2), d2], 1))
        u1 = self.up1(torch.cat([F.interpolate(u2, scale_factor=2), d1], 1))
        return self.out(u1)


def dice(prob, target, smooth=1.0):
    overlap = (prob * target).sum((1, 2, 3))
    return (2 * overlap + smooth) / (prob.sum((1, 2, 3)) + target.sum((1, 2, 3)) + smooth)


def main():
    torch.manual_seed(5)
    train = DataLoader(Tiles(320, 1, augment=True), batch_size=16, shuffle=True)
    val = DataLoader(Tiles(96, 2), batch_size=32)
    net = UNet()
    optimizer = torch.optim.AdamW(net.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)
    for epoch in range(8):
        net.train()
        running = 0.0
        for image, mask in train:
            logits = net(image)
            bce = F.binary_cross_entropy_with_logits(logits, mask)
            loss = bce + 1 - dice(logits.sigmoid(), mask).mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            running += loss.item() / len(train)
        schedule.step()
        net.eval()
        with torch.no_grad():
            outputs = [(net(image), mask) for image, mask in val]
        entropy = sum(F.binary_cross_entropy_with_logits(o, m).item() for o, m in outputs) / len(val)
        scores = torch.cat([dice((o > 0).float(), m) for o, m in outputs])
        print(f"[{epoch}] loss={running:.4f} val_bce={entropy:.4f} val_dice={scores.mean():.4f}")


if __name__ == "__main__":
    main()
