#!/usr/bin/env python3
"""k-fold cross-validation of a small network; one line of results per run."""

import argparse
import datetime
import pathlib
import statistics

import numpy as np
import torch
from torch import nn

RESULTS = pathlib.Path("results.tsv")
HEADER = ["date", "width", "lr", "mean", "spread", "folds"]


def moons(count, noise, seed):
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, np.pi, count)
    side = rng.integers(0, 2, count)
    x = np.where(side, 1 - np.cos(angle), np.cos(angle))
    y = np.where(side, 0.5 - np.sin(angle), np.sin(angle))
    points = np.stack([x, y], 1) + rng.normal(0, noise, (count, 2))
    return points.astype(np.float32), side.astype(np.int64)


def folds(count, k, seed=0):
    order = np.random.default_rng(seed).permutation(count)
    parts = np.array_split(order, k)
    for index, held in enumerate(parts):
        yield np.concatenate(parts[:index] + parts[index + 1 :]), held


def fit_and_score(points, labels, train, held, args):
    model = nn.Sequential(
        nn.Linear(2, args.width), nn.Tanh(), nn.Linear(args.width, args.width), nn.Tanh(),
        nn.Linear(args.width, 2),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    x, y = torch.from_numpy(points[train]), torch.from_numpy(labels[train])
    for _ in range(args.epochs):
        for rows in torch.randperm(len(x)).split(32):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        guess = model(torch.from_numpy(points[held])).argmax(1).numpy()
    return float((guess == labels[held]).mean())


def append(path, args, scores):
    new = not path.exists()
    today = datetime.date.today().isoformat()
    mean, spread = statistics.mean(scores), statistics.pstdev(scores)
    row = [today, str(args.width), str(args.lr), f"{mean:.4f}", f"{spread:.4f}", ",".join(scores)]
    with path.open("a") as handle:
        if new:
            handle.write("\t".join(HEADER) + "\n")
        handle.write("\t".join(row) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--lr", type=float, default=1e-2)
    args = parser.parse_args()
    points, labels = moons(600, 0.15, seed=4)
    scores = []
    for number, (train, held) in enumerate(folds(len(points), args.folds)):
        score = fit_and_score(points, labels, train, held, args)
        print(f"fold {number}: {score:.3f}")
        scores.append(round(score, 4))
    append(RESULTS, args, scores)


if __name__ == "__main__":
    main()
