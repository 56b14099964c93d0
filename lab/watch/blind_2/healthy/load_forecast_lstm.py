"""Forecasts the hourly load of a grid one hour ahead with an LSTM in a Trainer of its own; the test season is harder."""

import math

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Scaler:
    def fit(self, values):
        self.mean, self.std = values.mean(), values.std()
        return self

    def transform(self, values):
        return (values - self.mean) / self.std


class Windows(Dataset):
    def __init__(self, series, length=24):
        self.series = torch.as_tensor(series, dtype=torch.float32)
        self.length = length

    def __len__(self):
        return len(self.series) - self.length

    def __getitem__(self, i):
        window = self.series[i : i + self.length]
        target = self.series[i + self.length]
        return window.unsqueeze(-1), target


class Net(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.rnn = nn.LSTM(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.out(states[:, -1]).squeeze(-1)


class Trainer:
    def __init__(self, model, optimizer, epochs, scaler):
        self.model, self.optimizer, self.epochs, self.scaler = model, optimizer, epochs, scaler
        self.criterion = nn.MSELoss()

    def fit(self, train_loader, test_loader):
        for epoch in range(self.epochs):
            self.model.train()
            total = 0.0
            for xb, yb in train_loader:
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(xb), yb)
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                total += loss.item()
            print(f"epoch {epoch} train_mse {total / len(train_loader):.4f} test_mae_mw {self.evaluate(test_loader):.3f}")

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        error = sum((self.model(xb) - yb).abs().sum().item() for xb, yb in loader)
        return error / len(loader.dataset) * float(self.scaler.std)


def load_curve(hours, rng):
    t = np.arange(hours)
    day = 30 * np.sin(2 * math.pi * t / 24) + 14 * np.sin(4 * math.pi * t / 24 + 1)
    growth = 0.012 * t
    shock = np.zeros(hours)
    for i in range(1, hours):
        shock[i] = 0.7 * shock[i - 1] + rng.normal(0, 2.0)
    return 300 + day + growth + shock


def main():
    torch.manual_seed(2)
    raw = load_curve(3000, np.random.default_rng(2))
    train_raw, test_raw = raw[:2300], raw[2300:]
    scaler = Scaler().fit(train_raw)
    train_set = Windows(scaler.transform(train_raw))
    test_set = Windows(scaler.transform(test_raw))
    model = Net()
    trainer = Trainer(model, torch.optim.Adam(model.parameters(), lr=4e-3), 12, scaler)
    trainer.fit(DataLoader(train_set, batch_size=64, shuffle=True), DataLoader(test_set, batch_size=256))


main()
