"""Day-ahead load with an LSTM over a week of hours."""
import argparse
import os

import numpy as np
import pandas as pd
import torch
from torch import nn

from tables import markdown

WEEK, DAY = 168, 24


class Forecaster(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.lstm = nn.LSTM(3, hidden, batch_first=True)
        self.head = nn.Linear(hidden, DAY)

    def forward(self, x):
        _, (h, _) = self.lstm(x)
        return self.head(h[-1])


def windows(frame):
    load = frame["load_mw"].to_numpy(np.float32)
    mean, std = load.mean(), load.std()
    hour = frame.index.hour.to_numpy() / 24 * 2 * np.pi
    series = np.stack([(load - mean) / std, np.sin(hour), np.cos(hour)], 1).astype(np.float32)
    starts = range(0, len(series) - WEEK - DAY, DAY)
    x = torch.from_numpy(np.stack([series[s:s + WEEK] for s in starts]))
    y = torch.from_numpy(np.stack([series[s + WEEK:s + WEEK + DAY, 0] for s in starts]))
    when = [frame.index[s + WEEK] for s in starts]
    return x, y, when, (mean, std)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--csv", required=True)
    p.add_argument("--report", required=True)
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--holdout", type=float, default=0.2)
    args = p.parse_args()
    os.makedirs(os.path.dirname(args.report), exist_ok=True)
    frame = pd.read_csv(args.csv, parse_dates=["time"], index_col="time")
    x, y, when, (mean, std) = windows(frame)
    cut = int(len(x) * (1 - args.holdout))
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(args.epochs):
        for part in torch.randperm(cut).split(32):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x[part]), y[part])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        print(f"{epoch:4d} {loss.item():.4f}")
    with torch.no_grad():
        guess = model(x[cut:]) * std + mean
    truth = y[cut:] * std + mean
    errors = pd.DataFrame(((guess - truth).abs() / truth.abs()).numpy(), index=pd.to_datetime(when[cut:]))
    by_month = errors.groupby(errors.index.month).mean()
    with open(args.report, "w") as f:
        f.write("# Error by month and hour\n\n" + markdown(by_month))


if __name__ == "__main__":
    main()
