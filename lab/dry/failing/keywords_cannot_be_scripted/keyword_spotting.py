"""Spots keywords in audio; --export writes the network for the device."""
import argparse

import torch
from torch import nn


class Stage(nn.Module):
    def __init__(self, inputs, outputs, kind):
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, 3, padding=1)
        self.kind = kind

    def forward(self, x, **options):
        x = torch.relu(self.conv(x))
        if options.get("pool", True):
            x = nn.functional.avg_pool1d(x, 2)
        return x


class Spotter(nn.Module):
    def __init__(self, words=12):
        super().__init__()
        self.stages = nn.Sequential(Stage(40, 32, "a"), Stage(32, 32, "b"))
        self.out = nn.Linear(32, words)

    def forward(self, x):
        return self.out(self.stages(x).mean(dim=2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--export")
    args = parser.parse_args()
    model = Spotter()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(4):
        for _ in range(20):
            loss = nn.functional.cross_entropy(
                model(torch.randn(16, 40, 100)), torch.randint(0, 12, (16,))
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f}")
    if args.export:
        torch.jit.script(model.eval()).save(args.export)


if __name__ == "__main__":
    main()
