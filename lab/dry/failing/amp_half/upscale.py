"""Super-resolution of generated textures with mixed precision."""
import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class Textures(Dataset):
    def __init__(self, count, size=32):
        self.count, self.size = count, size

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        coarse = torch.rand(1, 3, 8, 8, generator=g)
        full = F.interpolate(coarse, size=(self.size, self.size), mode="bicubic")[0].clamp(0, 1)
        return F.avg_pool2d(full, 2), full


class Upscaler(nn.Module):
    def __init__(self, width=48, depth=4):
        super().__init__()
        self.inp = nn.Conv2d(3, width, 3, padding=1)
        self.body = nn.ModuleList([nn.Conv2d(width, width, 3, padding=1) for _ in range(depth)])
        self.out = nn.Sequential(nn.Conv2d(width, 12, 3, padding=1), nn.PixelShuffle(2))

    def forward(self, x):
        h = self.inp(x)
        for layer in self.body:
            h = h + F.relu(layer(h))
        return self.out(h) + F.interpolate(x, scale_factor=2)


class Precision:
    def __init__(self, kind, device):
        self.kind = kind if device.type == "cuda" else "full"
        self.device = device
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.kind == "mixed")

    def prepare(self, model):
        model = model.to(self.device, memory_format=torch.channels_last)
        return model.half() if self.kind == "mixed" else model

    def autocast(self):
        return torch.autocast(self.device.type, dtype=torch.float16, enabled=self.kind == "mixed")

    def step(self, loss, optimizer, model):
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        self.scaler.step(optimizer)
        self.scaler.update()


def psnr(a, b):
    return -10 * torch.log10(F.mse_loss(a.float(), b.float()) + 1e-8)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--images", type=int, default=256)
    p.add_argument("--precision", choices=["full", "mixed"], default="full")
    args = p.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    precision = Precision(args.precision, device)
    model = precision.prepare(Upscaler())
    optimizer = torch.optim.Adam(model.parameters(), 5e-4)
    loader = DataLoader(Textures(args.images), 16, shuffle=True)
    for epoch in range(args.epochs):
        for small, full in loader:
            small, full = small.to(device), full.to(device)
            optimizer.zero_grad()
            with precision.autocast():
                loss = F.l1_loss(model(small), full)
            precision.step(loss, optimizer, model)
        with torch.no_grad(), precision.autocast():
            print(epoch, loss.item(), psnr(model(small), full).item(), flush=True)
    torch.save(model.state_dict(), "upscale.pt")


if __name__ == "__main__":
    main()
