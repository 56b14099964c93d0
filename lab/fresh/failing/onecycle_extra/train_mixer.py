"""MLP-Mixer on random blobs with a one-cycle schedule and gradient clipping."""

import argparse

import torch
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, TensorDataset


class MixerLayer(nn.Module):
    def __init__(self, patches, width):
        super().__init__()
        self.first = nn.LayerNorm(width)
        self.tokens = nn.Sequential(nn.Linear(patches, 2 * patches), nn.GELU(), nn.Linear(2 * patches, patches))
        self.second = nn.LayerNorm(width)
        self.channels = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.tokens(self.first(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.second(x))


class Mixer(nn.Module):
    def __init__(self, side=16, patch=4, width=32, depth=2, classes=4):
        super().__init__()
        self.embed = nn.Conv2d(1, width, patch, stride=patch)
        patches = (side // patch) ** 2
        self.layers = nn.Sequential(*(MixerLayer(patches, width) for _ in range(depth)))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.embed(x).flatten(2).transpose(1, 2)
        return self.head(self.layers(x).mean(1))


def blobs(count):
    labels = torch.arange(count) % 4
    images = 0.3 * torch.randn(count, 1, 16, 16)
    for index, label in enumerate(labels.tolist()):
        row, column = divmod(label, 2)
        images[index, 0, 8 * row : 8 * row + 8, 8 * column : 8 * column + 8] += 1
    return TensorDataset(images, labels)


class Engine:
    def __init__(self, model, loader, args, device):
        self.model, self.loader, self.device = model, loader, device
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
        self.schedule = OneCycleLR(
            self.optimizer, max_lr=args.lr, epochs=args.epochs, steps_per_epoch=len(loader)
        )

    def step(self, images, labels):
        loss = nn.functional.cross_entropy(self.model(images), labels)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.schedule.step()
        return loss.item()

    def epoch(self):
        self.model.train()
        losses = [self.step(x.to(self.device), y.to(self.device)) for x, y in self.loader]
        return sum(losses) / len(losses)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = DataLoader(blobs(512), batch_size=args.batch_size, shuffle=True, drop_last=True)
    engine = Engine(Mixer().to(device), loader, args, device)
    for epoch in range(args.epochs):
        loss = engine.epoch()
        engine.schedule.step()
        print(f"epoch {epoch + 1}/{args.epochs} loss {loss:.4f} lr {engine.schedule.get_last_lr()[0]:.2e}")
    torch.save(engine.model.state_dict(), "mixer.pt")


if __name__ == "__main__":
    main()
