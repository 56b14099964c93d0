"""Predicts the next value of a series with a small transformer."""
import argparse
import math

import torch
from torch import nn


class Positions(nn.Module):
    def __init__(self, width, longest=512):
        super().__init__()
        place = torch.arange(longest).unsqueeze(1)
        rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        table = torch.zeros(longest, width)
        table[:, 0::2] = torch.sin(place * rate)
        table[:, 1::2] = torch.cos(place * rate)
        self.table = table

    def forward(self, x):
        return x + self.table[: x.size(1)]


class Forecaster(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.enter = nn.Linear(1, width)
        self.positions = Positions(width)
        layer = nn.TransformerEncoderLayer(width, 4, 64, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.leave = nn.Linear(width, 1)

    def forward(self, series):
        hidden = self.positions(self.enter(series.unsqueeze(-1)))
        return self.leave(self.layers(hidden))[:, -1, 0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    times = torch.linspace(0, 60, 2000)
    windows = torch.sin(times).unfold(0, 65, 1)
    model = Forecaster().to(args.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        for window in windows.split(64):
            window = window.to(args.device)
            loss = nn.functional.mse_loss(model(window[:, :-1]), window[:, -1])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
