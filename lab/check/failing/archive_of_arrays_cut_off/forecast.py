"""Forecasts the next values of a series."""

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Forecaster(nn.Module):
    def __init__(self, width=64, horizon=4):
        super().__init__()
        self.lstm = nn.LSTM(1, width, batch_first=True)
        self.out = nn.Linear(width, horizon)

    def forward(self, past):
        hidden, _ = self.lstm(past)
        return self.out(hidden[:, -1])


def windows(path, past=16, horizon=4):
    series = np.load(path)["series"]
    starts = range(len(series) - past - horizon + 1)
    inputs = np.stack([series[start : start + past] for start in starts])
    targets = np.stack([series[start + past : start + past + horizon] for start in starts])
    return TensorDataset(
        torch.from_numpy(inputs).float().unsqueeze(-1), torch.from_numpy(targets).float()
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    training = DataLoader(windows(args.folder / "train.npz"), batch_size=32, shuffle=True)
    validation = DataLoader(windows(args.folder / "validation.npz"), batch_size=256)
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        model.train()
        for past, future in training:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(past), future).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            losses = [nn.functional.mse_loss(model(past), future) for past, future in validation]
        print(epoch, torch.stack(losses).mean().item())


if __name__ == "__main__":
    main()
