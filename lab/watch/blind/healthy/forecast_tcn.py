"""Forecasts load 6 steps ahead with a causal convolution network; own Trainer that validates before the first epoch."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(59)


def make_series(n):
    t = torch.arange(n).float()
    daily, weekly = torch.sin(2 * math.pi * t / 24), torch.sin(2 * math.pi * t / 168)
    ar = torch.zeros(n)
    for i in range(1, n):
        ar[i] = 0.6 * ar[i - 1] + 0.1 * torch.randn(())
    return 5 + 2 * daily + weekly * daily + ar


class Windows(Dataset):
    def __init__(self, series, history=48, horizon=6):
        self.series, self.history, self.horizon = series, history, horizon

    def __len__(self):
        return len(self.series) - self.history - self.horizon

    def __getitem__(self, i):
        end = i + self.history
        return self.series[i:end][None], self.series[end:end + self.horizon]


class TCN(nn.Module):
    def __init__(self, horizon=6, width=24):
        super().__init__()
        layers = []
        for i, dilation in enumerate((1, 2, 4, 8)):
            layers += [
                nn.ConstantPad1d((2 * dilation, 0), 0.0),
                nn.Conv1d(width if i else 1, width, 3, dilation=dilation),
                nn.BatchNorm1d(width),
                nn.ReLU(),
            ]
        self.net = nn.Sequential(*layers)
        self.out = nn.Linear(width, horizon)

    def forward(self, x):
        return self.out(self.net(x)[:, :, -1])


class Trainer:
    def __init__(self, model, train, val, epochs):
        self.model, self.train_loader, self.val_loader, self.epochs = model, train, val, epochs
        self.criterion = nn.HuberLoss()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=epochs)

    def validate(self):
        self.model.eval()
        with torch.no_grad():
            errors = [(self.model(x) - y).abs().mean() for x, y in self.val_loader]
        return torch.stack(errors).mean().item()

    def run(self):
        print(f"sanity check val_mae {self.validate():.4f}")
        for epoch in range(self.epochs):
            self.model.train()
            for x, y in self.train_loader:
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(x), y)
                loss.backward()
                self.optimizer.step()
            self.scheduler.step()
            print(f"epoch {epoch} loss {loss.item():.4f} val_mae {self.validate():.4f}")


series = make_series(2600)
mean, std = series[:2000].mean(), series[:2000].std()
series = (series - mean) / std
train = DataLoader(Windows(series[:2000]), batch_size=32, shuffle=True)
val = DataLoader(Windows(series[2000:]), batch_size=128)
Trainer(TCN(), train, val, epochs=8).run()
