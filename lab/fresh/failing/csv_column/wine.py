"""Quality of wine from its chemistry, as ordinal regression."""

import argparse

import numpy as np
import pandas as pd
import torch
from torch import nn

INPUTS = ["acidity", "sugar", "alcohol"]
LEVELS = 10


def read(path):
    frame = pd.read_csv(path)
    frame = frame.dropna(subset=INPUTS)
    return frame.reset_index(drop=True)


class Ordinal(nn.Module):
    def __init__(self, inputs, hidden=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        self.steps = nn.Parameter(torch.linspace(-3, 3, LEVELS - 1))

    def forward(self, x):
        return self.body(x) - self.steps

    def levels(self, x):
        return (self.forward(x) > 0).sum(1)


class Scaler:
    def fit(self, values):
        self.mean, self.spread = values.mean(0), values.std(0)
        return self

    def __call__(self, frame):
        values = (frame[INPUTS].to_numpy() - self.mean) / self.spread
        return torch.tensor(values, dtype=torch.float32)


def train(model, x, quality, epochs):
    targets = (quality[:, None] > torch.arange(LEVELS - 1)).float()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(epochs):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % 20 == 0:
            print(epoch, loss.item())


def test(model, scale, frame):
    with torch.no_grad():
        guess = model.levels(scale(frame)).numpy()
    truth = frame["quality"].to_numpy()
    return {"mae": float(np.abs(guess - truth).mean()), "exact": float((guess == truth).mean())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--epochs", type=int, default=100)
    args = parser.parse_args()
    frame = read(args.train)
    scale = Scaler().fit(frame[INPUTS].to_numpy())
    model = Ordinal(len(INPUTS))
    train(model, scale(frame), torch.tensor(frame["quality"].to_numpy()), args.epochs)
    torch.save(model.state_dict(), "wine.pt")
    print(test(model, scale, read(args.test)))


if __name__ == "__main__":
    main()
