"""Hourly heat demand of several buildings, one day ahead, from a sliding window; time-major LSTM, Huber loss."""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(8)
torch.manual_seed(8)
HOURS, BUILDINGS, WINDOW, AHEAD = 24 * 60, 6, 48, 12


def simulate():
    t = np.arange(HOURS)
    temperature = 8 - 0.011 * t / 3 + 5 * np.sin(2 * np.pi * (t - 9) / 24) + np.cumsum(rng.normal(0, 0.25, HOURS)) * 0.4
    series = []
    for _ in range(BUILDINGS):
        base, slope, lag = rng.uniform(40, 120), rng.uniform(1.5, 4.0), int(rng.integers(1, 6))
        occupied = ((t % 24 > 6) & (t % 24 < 20) & (t // 24 % 7 < 5)).astype(float)
        demand = base + slope * (18 - np.roll(temperature, lag)) + 0.25 * base * occupied + rng.normal(0, 2, HOURS)
        series.append(np.stack([demand, temperature, np.sin(2 * np.pi * t / 24), np.cos(2 * np.pi * t / 24), occupied], 1))
    return np.stack(series)


class Scaler:
    def fit(self, values):
        self.mean, self.std = values.mean((0, 1)), values.std((0, 1)) + 1e-6
        return self

    def transform(self, values):
        return (values - self.mean) / self.std


def windows(series, stride):
    xs, ys = [], []
    for building in series:
        for start in range(0, len(building) - WINDOW - AHEAD, stride):
            xs.append(building[start : start + WINDOW])
            ys.append(building[start + WINDOW : start + WINDOW + AHEAD, 0])
    return torch.tensor(np.array(xs), dtype=torch.float32), torch.tensor(np.array(ys), dtype=torch.float32)


class Forecaster(nn.Module):
    def __init__(self, features, hidden=40):
        super().__init__()
        self.lstm = nn.LSTM(features, hidden)
        self.head = nn.Linear(hidden, AHEAD)

    def forward(self, x):
        x = x.transpose(0, 1)
        _, (h, _) = self.lstm(x)
        return self.head(h[-1])


raw = simulate()
cut = int(HOURS * 0.75)
train_raw, test_raw = raw[:, :cut], raw[:, cut:]
scaler = Scaler().fit(train_raw)
x_train, y_train = windows(scaler.transform(train_raw), stride=3)
x_test, y_test = windows(scaler.transform(test_raw), stride=5)
model = Forecaster(x_train.shape[-1])
criterion = nn.HuberLoss()
opt = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(1, 9):
    model.train()
    losses = []
    for idx in torch.randperm(len(x_train)).split(64):
        loss = criterion(model(x_train[idx]), y_train[idx])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        kilowatts = scaler.std[0] * model(x_test).numpy() + scaler.mean[0]
    truth = windows(test_raw, stride=5)[1].numpy()
    print(f"epoch {epoch} huber {np.mean(losses):.4f} test MAE kW {np.abs(kilowatts - truth).mean():.3f}")
