import argparse
from pathlib import Path

import torch
from torch import nn


def new_state():
    model = nn.Linear(6, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    return model, optimizer, scheduler


def save(path, epoch, model, optimizer):
    torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)


def resume(path, model, optimizer, scheduler):
    print(f"=> resuming from {path}")
    checkpoint = torch.load(path)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    scheduler.load_state_dict(checkpoint["scheduler"])
    return checkpoint["epoch"] + 1


def train(epochs, path):
    model, optimizer, scheduler = new_state()
    first = resume(path, model, optimizer, scheduler) if path.exists() else 0
    for epoch in range(first, epochs):
        x = torch.randn(32, 6)
        loss = (model(x) - x[:, :1]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        save(path, epoch, model, optimizer)
        print(f"epoch {epoch}: loss {loss.item():.4f}")


parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()
train(args.epochs, Path("last.pt"))
