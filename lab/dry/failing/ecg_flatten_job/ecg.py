"""Rhythm from twelve-lead ECG; at the end on the recordings of another hospital too."""
import argparse
import pathlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Recordings(Dataset):
    def __init__(self, path):
        with np.load(path) as f:
            self.signal, self.rhythm = f["signal"], f["rhythm"]

    def __len__(self):
        return len(self.rhythm)

    def __getitem__(self, i):
        signal = self.signal[i]
        signal = (signal - signal.mean(1, keepdims=True)) / (signal.std(1, keepdims=True) + 1e-6)
        return torch.from_numpy(signal), int(self.rhythm[i])


class Net(nn.Module):
    def __init__(self, leads, length, classes=5, width=32):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(leads, width, 15, stride=2, padding=7), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Conv1d(width, width, 15, stride=2, padding=7), nn.BatchNorm1d(width), nn.ReLU(),
            nn.AvgPool1d(5))
        with torch.no_grad():
            size = self.conv.eval()(torch.zeros(1, leads, length)).numel()
        self.classifier = nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(size, classes))

    def forward(self, x):
        return self.classifier(self.conv(x))


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    right = [model(x).argmax(1) == y for x, y in loader]
    return torch.cat(right).float().mean().item()


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--data", type=pathlib.Path, required=True)
    p.add_argument("--epochs", type=int, default=20)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--out", type=pathlib.Path, default=pathlib.Path("ecg.pt"))
    args = p.parse_args()
    torch.manual_seed(0)
    train = Recordings(args.data / "train.npz")
    val = DataLoader(Recordings(args.data / "val.npz"), 64)
    loader = DataLoader(train, args.batch, shuffle=True, drop_last=True)
    model = Net(*train[0][0].shape)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    best = 0.0
    for epoch in range(args.epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        now = accuracy(model, val)
        if now >= best:
            best = now
            torch.save(model.state_dict(), args.out)
        print(f"epoch {epoch} val {now:.3f} best {best:.3f}", flush=True)
    model.load_state_dict(torch.load(args.out))
    for name in ("val", "external"):
        print(name, accuracy(model, DataLoader(Recordings(args.data / f"{name}.npz"), 64)))


if __name__ == "__main__":
    main()
