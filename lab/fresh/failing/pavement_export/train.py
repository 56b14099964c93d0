"""Regress the roughness of road segments from sensor statistics."""
import argparse
import os

import numpy as np
import pandas as pd
import torch
from torch import nn

FEATURES = ["mean_z", "std_z", "speed", "temperature", "age"]


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--csv")
    p.add_argument("--out")
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--folds", type=int, default=5)
    return p.parse_args()


def fold_of(frame, folds):
    codes = frame["road"].astype("category").cat.codes
    return codes.to_numpy() % folds


class Net(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("std", torch.ones(inputs))
        self.body = nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 1))

    def forward(self, x):
        return self.body((x - self.mean) / self.std)[:, 0]


def train(x, y, epochs):
    model = Net(x.shape[1])
    model.mean.copy_(x.mean(0))
    model.std.copy_(x.std(0).clamp(min=1e-6))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(epochs):
        for part in torch.randperm(len(x)).split(128):
            optimizer.zero_grad()
            nn.functional.smooth_l1_loss(model(x[part]), y[part]).backward()
            optimizer.step()
    return model.eval()


def main():
    args = parse()
    frame = pd.read_csv(args.csv)
    fold = fold_of(frame, args.folds)
    x = torch.tensor(frame[FEATURES].to_numpy(np.float32))
    y = torch.tensor(frame["iri"].to_numpy(np.float32))
    frame["predicted"] = np.nan
    for k in range(args.folds):
        model = train(x[fold != k], y[fold != k], args.epochs)
        with torch.no_grad():
            frame.loc[fold == k, "predicted"] = model(x[fold == k]).numpy()
        torch.save(model.state_dict(), os.path.join(args.out, f"fold{k}.pt"))
    frame.to_csv(os.path.join(args.out, "predictions.csv"), index=False)


if __name__ == "__main__":
    main()
