"""CIFAR-10 classifier on pre-extracted arrays."""

import argparse
import os
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class SmallResNet(nn.Module):
    def __init__(self, width=64, num_classes=10):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.fc = nn.Linear(width, num_classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.stem(x)))
        x = F.relu(x + self.bn2(self.conv2(x)))
        return self.fc(x.mean(dim=(2, 3)))


def parse_args():
    parser = argparse.ArgumentParser(description="CIFAR-10")
    parser.add_argument("--data-dir", default="/Users/marta/datasets/cifar10")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def load_split(folder, split):
    images = np.load(os.path.join(folder, f"{split}_images.npy"))
    labels = np.load(os.path.join(folder, f"{split}_labels.npy"))
    images = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
    return TensorDataset(images, torch.from_numpy(labels).long())


def train_epoch(model, loader, optimizer, device):
    model.train()
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()


@torch.no_grad()
def accuracy(model, loader, device):
    model.eval()
    hits = total = 0
    for images, labels in loader:
        predicted = model(images.to(device)).argmax(dim=1).cpu()
        hits += (predicted == labels).sum().item()
        total += labels.numel()
    return hits / max(total, 1)


def main():
    args = parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_set = load_split(args.data_dir, "train")
    test_set = load_split(args.data_dir, "test")
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=512)
    model = SmallResNet().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    for epoch in range(args.epochs):
        train_epoch(model, train_loader, optimizer, device)
        print(f"epoch {epoch}: {accuracy(model, test_loader, device):.4f}")


if __name__ == "__main__":
    main()
