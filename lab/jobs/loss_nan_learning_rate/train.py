"""Reference-style training loop: stops when the loss is not finite."""
import argparse
import math
import sys

import torch
from torch import nn


def train_one_epoch(model, optimizer, epoch, args):
    for i in range(args.steps):
        x = torch.randn(args.batch_size, 16) * 10
        target = x.pow(2).sum(1, keepdim=True)
        loss = nn.functional.mse_loss(model(x), target)
        loss_value = loss.item()
        if i % 2 == 0:
            print(f"Epoch: [{epoch}]  [{i:3d}/{args.steps}]  lr: {args.lr}  loss: {loss_value:.4f}")
        if not math.isfinite(loss_value):
            print(f"Loss is {loss_value}, stopping training")
            sys.exit(1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.5)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()
    print(args)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        train_one_epoch(model, optimizer, epoch, args)


if __name__ == "__main__":
    main()
