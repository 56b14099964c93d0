"""Multi-label classifier, evaluated after the last epoch."""

import argparse

import torch
from torch import nn


def make_data(rows, labels=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(rows, 24, generator=generator)
    weights = torch.randn(24, labels, generator=generator)
    return features, (features @ weights > 1.0).float()


def train(features, targets, epochs):
    model = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, targets.shape[1]))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    criterion = nn.BCEWithLogitsLoss()
    for _ in range(epochs):
        for part in torch.randperm(len(features)).split(256):
            optimizer.zero_grad()
            criterion(model(features[part]), targets[part]).backward()
            optimizer.step()
    return model


def evaluate(model, features, targets):
    from metrics import macro_f1, subset_accuracy

    model.eval()
    with torch.no_grad():
        predicted = (model(features) > 0).float()
    return {
        "macro_f1": macro_f1(targets, predicted),
        "subset_accuracy": subset_accuracy(targets, predicted),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    features, targets = make_data(6000)
    folds = torch.arange(len(features)) % args.folds
    for fold in range(args.folds):
        held = folds == fold
        model = train(features[~held], targets[~held], args.epochs)
        print(fold, evaluate(model, features[held], targets[held]))


if __name__ == "__main__":
    main()
