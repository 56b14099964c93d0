"""Denoises one-dimensional signals."""

import argparse

import torch
from torch import nn

from blocks import Gated


class Denoiser(nn.Module):
    def __init__(self, channels, depth):
        super().__init__()
        self.first = nn.Conv1d(1, channels, 5, padding=2)
        self.blocks = nn.ModuleList([Gated(channels, 2**number) for number in range(depth)])
        self.last = nn.Conv1d(channels, 1, 1)

    def forward(self, x):
        hidden = self.first(x)
        for block in self.blocks:
            hidden = block(hidden)
        return self.last(hidden)


def signals(count=32, length=256):
    time = torch.linspace(0, 1, length)
    frequency = 2 + 10 * torch.rand(count, 1)
    clean = torch.sin(6.28 * frequency * time).unsqueeze(1)
    return clean + 0.4 * torch.randn_like(clean), clean


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--channels", type=int, default=16)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    model = Denoiser(args.channels, args.depth)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(args.steps):
        noisy, clean = signals()
        loss = nn.functional.l1_loss(model(noisy), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
