"""Regression on synthetic waves, one GPU."""

import argparse
import math

import torch
from torch import nn


class Siren(nn.Module):
    """A network with sine activations (Sitzmann et al. 2020)."""

    def __init__(self, width, depth=4):
        super().__init__()
        sizes = [1] + [width] * depth
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])])
        self.out = nn.Linear(width, 1)
        for layer in self.layers:
            bound = math.sqrt(6 / layer.in_features) / 30
            nn.init.uniform_(layer.weight, -bound, bound)

    def forward(self, x):
        for layer in self.layers:
            x = torch.sin(30 * layer(x))
        return self.out(x)


def wave(points):
    return torch.sin(8 * points) + 0.3 * torch.sin(31 * points)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--lr", type=float, default=1e-4)
    args = parser.parse_args()
    device = torch.device("cuda")
    model = Siren(args.width).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for step in range(args.steps):
        points = torch.rand(4096, 1, device=device) * 2 - 1
        loss = nn.functional.mse_loss(model(points), wave(points))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
