import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader

from flowers.data import NAMES, Flowers
from flowers.report import write_report


def build(classes):
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, classes),
    )


def train_epoch(model, loader, optimizer, device):
    model.train()
    total = 0.0
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
    return total / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--report", default="report.json")
    args = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train = DataLoader(Flowers("train"), batch_size=args.batch_size, shuffle=True)
    valid = DataLoader(Flowers("valid"), batch_size=args.batch_size)
    model = build(len(NAMES)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        print(f"epoch {epoch}: {train_epoch(model, train, optimizer, device):.4f}")
    torch.save(model.state_dict(), "flowers.pt")
    print(write_report(model, valid, device, args.report))


if __name__ == "__main__":
    main()
