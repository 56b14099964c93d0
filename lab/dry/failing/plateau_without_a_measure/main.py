"""An autoencoder for sensor windows."""
import argparse

import torch
from torch import nn

from schedules import KNOWN, schedule


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--schedule", choices=sorted(KNOWN), default="cosine")
    parser.add_argument("--epochs", type=int, default=12)
    return parser.parse_args()


def epoch_of(model, optimizer, windows):
    total = 0.0
    for part in windows.split(32):
        loss = nn.functional.l1_loss(model(part), part)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(part)
    return total / len(windows)


def main(args):
    windows = torch.randn(640, 50).cumsum(dim=1) / 7
    model = nn.Sequential(nn.Linear(50, 12), nn.ReLU(), nn.Linear(12, 50))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = schedule(args.schedule, optimizer, args.epochs)
    for epoch in range(args.epochs):
        loss = epoch_of(model, optimizer, windows)
        scheduler.step()
        print(f"epoch {epoch} loss {loss:.4f}")


main(options())
