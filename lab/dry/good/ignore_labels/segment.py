"""Segmentation of generated scenes with unlabelled pixels."""
import argparse
import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

VOID, CLASSES = 255, 6


class Scenes(Dataset):
    def __init__(self, count, seed, rare=True):
        self.count, self.seed, self.rare = count, seed, rare

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 100000 + i)
        label = torch.full((32, 32), -1)
        for _ in range(4):
            kind = int(torch.randint(CLASSES if self.rare else CLASSES - 1, (), generator=g))
            r, c = torch.randint(0, 20, (2,), generator=g).tolist()
            label[r:r + 12, c:c + 12] = kind
        image = F.one_hot(label + 1, CLASSES + 1)[..., 1:].permute(2, 0, 1).float()[:3]
        image = image + 0.3 * torch.randn(3, 32, 32, generator=g)
        return image, label.where(label >= 0, VOID).to(torch.uint8)


class Net(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.a = nn.Conv2d(3, width, 3, padding=1)
        self.b = nn.Conv2d(width, width, 3, padding=2, dilation=2)
        self.out = nn.Conv2d(width, CLASSES, 1)

    def forward(self, x):
        return self.out(F.relu(self.b(F.relu(self.a(x)))))


class Confusion:
    def __init__(self, device):
        self.matrix = torch.zeros(CLASSES, CLASSES, dtype=torch.long, device=device)

    def add(self, guess, label):
        valid = label != VOID
        if not valid.any():
            return
        flat = label[valid].long() * CLASSES + guess[valid]
        self.matrix += torch.bincount(flat, minlength=CLASSES ** 2).view(CLASSES, CLASSES)

    def iou(self):
        matrix = self.matrix.cpu().double()
        union = matrix.sum(0) + matrix.sum(1) - matrix.diag()
        return [float(matrix[k, k] / union[k]) if union[k] else math.nan for k in range(CLASSES)]


def loss_of(logits, label):
    label = label.long()
    if (label == VOID).all():
        return logits.sum() * 0
    return F.cross_entropy(logits, label, ignore_index=VOID)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--amp", action=argparse.BooleanOptionalAction, default=torch.cuda.is_available())
    args = p.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(Scenes(128, 0), 16, shuffle=True)
    test = DataLoader(Scenes(40, 1, rare=False), 16)
    model = Net().to(device)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    scaler = torch.amp.GradScaler(device.type, enabled=args.amp)
    for epoch in range(args.epochs):
        model.train()
        for image, label in loader:
            image, label = image.to(device), label.to(device)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device.type, torch.float16 if device.type == "cuda" else torch.bfloat16, enabled=args.amp):
                loss = loss_of(model(image), label)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        print(epoch, loss.item(), flush=True)
    model.eval()
    confusion = Confusion(device)
    with torch.inference_mode():
        for image, label in test:
            confusion.add(model(image.to(device)).argmax(1), label.to(device))
    iou = confusion.iou()
    known = [v for v in iou if not math.isnan(v)]
    print(iou, "mean", sum(known) / len(known) if known else None)
    script = torch.jit.trace(model.cpu(), torch.zeros(1, 3, 32, 32))
    script.save("segment.ts")


if __name__ == "__main__":
    main()
