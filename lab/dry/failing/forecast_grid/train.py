import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    history: int
    horizon: int
    batch_size: int
    epochs: int
    hidden: int
    val_share: float

    @classmethod
    def load(cls, path):
        return cls(**json.loads(Path(path).read_text()))


class Windows(Dataset):
    def __init__(self, series, config):
        self.series, self.config = torch.as_tensor(series, dtype=torch.float32), config

    def __len__(self):
        return max(0, len(self.series) - self.config.history - self.config.horizon + 1)

    def __getitem__(self, start):
        middle = start + self.config.history
        return self.series[start:middle], self.series[middle : middle + self.config.horizon, 0]


class Forecaster(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.rnn = nn.GRU(3, config.hidden, batch_first=True)
        self.out = nn.Linear(config.hidden, config.horizon)

    def forward(self, x):
        return self.out(self.rnn(x)[0][:, -1])


def evaluate(model, loader):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += (model(x) - y).abs().mean().item()
    return total / len(loader)


def main():
    config = Config.load("config.json")
    hours = np.arange(1200)
    load = np.sin(hours * 2 * np.pi / 24) + 0.1 * np.random.default_rng(0).standard_normal(1200)
    series = np.stack([load, np.sin(hours * 2 * np.pi / 168), hours / 1200], 1)
    cut = int(len(series) * (1 - config.val_share))
    train = DataLoader(Windows(series[:cut], config), batch_size=config.batch_size, shuffle=True)
    val = DataLoader(Windows(series[cut:], config), batch_size=config.batch_size)
    model = Forecaster(config)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for epoch in range(config.epochs):
        model.train()
        for x, y in train:
            loss = (model(x) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
    print("MAE", evaluate(model, val))


if __name__ == "__main__":
    main()
