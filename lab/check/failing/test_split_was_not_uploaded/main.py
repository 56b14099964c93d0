"""Bag-of-words sentiment classifier."""

import argparse
import json
import os

import torch
from torch import nn
from torch.utils.data import DataLoader

from vocabulary import Vocabulary


def read_split(root, split):
    path = os.path.join(root, split + ".jsonl")
    with open(path, encoding="utf-8") as handle:
        return [json.loads(line) for line in handle if line.strip()]


def collate(vocabulary):
    def pack(rows):
        bags = torch.stack([vocabulary.bag(row["text"]) for row in rows])
        return bags, torch.tensor([row["label"] for row in rows])

    return pack


def fit(model, loader, valid, epochs, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        model.train()
        for bags, labels in loader:
            optimizer.zero_grad()
            criterion(model(bags), labels).backward()
            optimizer.step()
        print(f"epoch {epoch}: valid {score(model, valid):.3f}")


@torch.no_grad()
def score(model, loader):
    model.eval()
    hits = [(model(bags).argmax(1) == labels).float().mean() for bags, labels in loader]
    return float(torch.stack(hits).mean())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-root", default="data")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-2)
    args = parser.parse_args()

    train_rows = read_split(args.data_root, "train")
    valid_rows = read_split(args.data_root, "valid")
    vocabulary = Vocabulary(row["text"] for row in train_rows)
    pack = collate(vocabulary)
    train_loader = DataLoader(train_rows, args.batch_size, shuffle=True, collate_fn=pack)
    valid_loader = DataLoader(valid_rows, args.batch_size, collate_fn=pack)
    model = nn.Sequential(nn.Linear(len(vocabulary), 64), nn.ReLU(), nn.Linear(64, 2))
    fit(model, train_loader, valid_loader, args.epochs, args.lr)

    test_rows = read_split(args.data_root, "test")
    test_loader = DataLoader(test_rows, args.batch_size, collate_fn=pack)
    print(f"test accuracy {score(model, test_loader):.4f}")


if __name__ == "__main__":
    main()
