"""Train, keep the best checkpoint, then test it."""
import argparse
import os

import torch
from torch import nn


def train(args, path):
    model = nn.Linear(10, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    best = float("inf")
    for epoch in range(args.epochs):
        x = torch.randn(64, 10)
        y = (x.sum(1) > 0).long()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loss.item() < best:
            best = loss.item()
            torch.save({"epoch": epoch, "args": args, "model": model.state_dict()}, path)
            print(f"Epoch {epoch}: loss improved to {best:.4f}, checkpoint saved")


def test(path):
    print("loading best checkpoint for the final test ...")
    checkpoint = torch.load(path, map_location="cpu")
    model = nn.Linear(10, 2)
    model.load_state_dict(checkpoint["model"])
    x = torch.randn(1000, 10)
    accuracy = (model(x).argmax(1) == (x.sum(1) > 0).long()).float().mean()
    print(f"test accuracy {accuracy:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--out", default="runs/exp1")
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    best_path = os.path.join(args.out, "best.pt")
    train(args, best_path)
    test(best_path)
