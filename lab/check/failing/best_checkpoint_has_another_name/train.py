import argparse
import os

import torch
from torch import nn

from model import MLP
from data import make_loaders


def run_epoch(model, loader, criterion, optimizer=None):
    total, count = 0.0, 0
    for features, target in loader:
        prediction = model(features)
        loss = criterion(prediction, target)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item() * len(target)
        count += len(target)
    return total / max(count, 1)


def train(args):
    train_loader, valid_loader, test_loader = make_loaders(args.batch_size)
    model = MLP(16, args.hidden, 1)
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    best = float("inf")
    os.makedirs(args.output, exist_ok=True)
    for epoch in range(args.epochs):
        model.train()
        training = run_epoch(model, train_loader, criterion, optimizer)
        model.eval()
        with torch.no_grad():
            validation = run_epoch(model, valid_loader, criterion)
        print(f"{epoch:3d} train {training:.4f} valid {validation:.4f}")
        if validation < best:
            best = validation
            torch.save(model.state_dict(), os.path.join(args.output, "model_best.pt"))
    return model, test_loader


def evaluate(model, loader, args):
    state = torch.load(os.path.join(args.output, "best_model.pt"))
    model.load_state_dict(state)
    model.eval()
    with torch.no_grad():
        print("test", run_epoch(model, loader, nn.MSELoss()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", default="output")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    model, test_loader = train(args)
    evaluate(model, test_loader, args)


if __name__ == "__main__":
    main()
