"""Digits of scikit-learn with gradient accumulation and a one-cycle schedule."""
import argparse
import math

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def sets():
    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    y = torch.tensor(digits.target)
    a, b = train_test_split(torch.arange(len(x)).numpy(), stratify=digits.target, random_state=0)
    return TensorDataset(x[a], y[a]), TensorDataset(x[b], y[b])


class Mixer(nn.Module):
    def __init__(self, width=64, depth=2):
        super().__init__()
        self.patch = nn.Conv2d(1, width, 2, 2)
        self.token = nn.ModuleList([nn.Linear(16, 16) for _ in range(depth)])
        self.channel = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.out = nn.Linear(width, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2)
        for token, channel in zip(self.token, self.channel):
            x = x + nn.functional.gelu(token(x))
            x = x + nn.functional.gelu(channel(x.transpose(1, 2))).transpose(1, 2)
        return self.out(x.mean(-1))


class Stepper:
    """An optimizer that steps every few batches, and always with the last one of an epoch."""

    def __init__(self, parameters, lr, epochs, batches, accumulate):
        self.accumulate, self.batches = accumulate, batches
        self.optimizer = torch.optim.AdamW(parameters, lr=lr)
        total = epochs * batches // accumulate
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, max_lr=lr, total_steps=total)

    def backward(self, loss, index):
        (loss / self.accumulate).backward()
        if (index + 1) % self.accumulate == 0 or index + 1 == self.batches:
            self.optimizer.step()
            self.schedule.step()
            self.optimizer.zero_grad()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--accumulate", type=int, default=1)
    p.add_argument("--lr", type=float, default=3e-3)
    args = p.parse_args()
    torch.manual_seed(0)
    train, test = sets()
    loader = DataLoader(train, args.batch, shuffle=True)
    model = Mixer()
    stepper = Stepper(model.parameters(), args.lr, args.epochs, len(loader), args.accumulate)
    print("updates per epoch", math.ceil(len(loader) / args.accumulate))
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for i, (x, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(x), y, label_smoothing=0.05)
            stepper.backward(loss, i)
            total += loss.item()
        model.eval()
        with torch.no_grad():
            x, y = test.tensors
            accuracy = (model(x).argmax(1) == y).float().mean().item()
        print(epoch, round(total / len(loader), 4), round(accuracy, 4), flush=True)
    torch.save(model.state_dict(), "digits.pt")


if __name__ == "__main__":
    main()
