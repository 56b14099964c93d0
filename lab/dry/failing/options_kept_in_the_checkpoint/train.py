"""Fits a curve; takes up where an earlier run ended."""
import argparse
import os

import torch
from torch import nn

from state import Progress, keep, recall

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=1e-3)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--checkpoint", default="last.pt")
args = parser.parse_args()

x = torch.linspace(-3, 3, 256).unsqueeze(1)
y = torch.sin(2 * x)
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
progress = Progress()
if os.path.exists(args.checkpoint):
    progress = recall(args.checkpoint, model, optimizer)
while progress.epoch < args.epochs:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    progress.epoch += 1
    progress.losses.append(loss.item())
    keep(args.checkpoint, model, optimizer, progress)

fresh = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
print("loss by epoch:", recall(args.checkpoint, fresh).losses)
