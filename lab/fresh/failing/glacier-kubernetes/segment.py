import argparse
import json
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Tiles(Dataset):
    def __init__(self, index, split):
        index = pathlib.Path(index)
        with index.open() as f:
            entries = json.load(f)
        self.base = index.parent
        self.entries = [e for e in entries if e["split"] == split]

    def __len__(self):
        return len(self.entries)

    def __getitem__(self, i):
        entry = self.entries[i]
        image = np.load(self.base / entry["image"]).astype(np.float32) / 10000
        mask = np.load(self.base / entry["mask"]).astype(np.int64)
        return torch.from_numpy(image), torch.from_numpy(mask)


def double(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(inplace=True),
                         nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, bands=4, classes=3, width=24):
        super().__init__()
        self.down1, self.down2, self.mid = double(bands, width), double(width, 2 * width), double(2 * width, 4 * width)
        self.up2, self.up1 = double(6 * width, 2 * width), double(3 * width, width)
        self.out = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.mid(F.max_pool2d(b, 2))
        b = self.up2(torch.cat([F.interpolate(c, scale_factor=2), b], 1))
        return self.out(self.up1(torch.cat([F.interpolate(b, scale_factor=2), a], 1)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--index", required=True)
    p.add_argument("--out", type=pathlib.Path, required=True)
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--batch", type=int, default=8)
    args = p.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = UNet().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    train = DataLoader(Tiles(args.index, "train"), args.batch, shuffle=True, num_workers=2)
    test = DataLoader(Tiles(args.index, "test"), args.batch)
    for epoch in range(args.epochs):
        model.train()
        for image, mask in train:
            optimizer.zero_grad()
            F.cross_entropy(model(image.to(device)), mask.to(device)).backward()
            optimizer.step()
        torch.save(model.state_dict(), args.out / "unet.pt")
        print("done", epoch)
    model.eval()
    inter = union = 0
    with torch.no_grad():
        for image, mask in test:
            p = model(image.to(device)).argmax(1).cpu() == 1
            inter += (p & (mask == 1)).sum().item()
            union += (p | (mask == 1)).sum().item()
    print("iou", inter / union if union else float("nan"))


if __name__ == "__main__":
    main()
