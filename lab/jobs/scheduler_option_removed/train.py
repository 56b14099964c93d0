import argparse
import sys

import torch
from torch import nn, optim


def get_args(argv):
    parser = argparse.ArgumentParser("segmentation")
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--patience", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=4)
    return parser.parse_args(argv)


def main(argv):
    args = get_args(argv)
    print("=> creating model 'tiny-unet'")
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 3, padding=1)
    )
    optimizer = optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
    print("=> creating optimizer, scheduler")
    scheduler = optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, mode="min", factor=0.5, patience=args.patience, verbose=True
    )
    for epoch in range(args.epochs):
        x = torch.rand(4, 1, 32, 32)
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), (x > 0.5).float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step(loss.item())
        print(f"epoch {epoch + 1}/{args.epochs} - loss {loss.item():.4f}")


if __name__ == "__main__":
    main(sys.argv[1:])
