import argparse
import os

import torch
from torch import nn


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--warmup", type=int, default=0, help="steps")
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--amp", action="store_true")
    return parser.parse_args()


def build():
    return nn.Sequential(
        nn.Conv1d(1, 32, 9, padding=4),
        nn.ReLU(),
        nn.MaxPool1d(4),
        nn.Conv1d(32, 64, 9, padding=4),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(64, 4),
    )


def signals(count=64, length=512):
    labels = torch.randint(0, 4, (count,))
    time = torch.linspace(0, 1, length)
    waves = torch.sin(6.28 * (labels[:, None] + 1) * 3 * time)
    return (waves + 0.3 * torch.randn(count, length)).unsqueeze(1), labels


def main():
    args = parse()
    os.makedirs(args.out, exist_ok=True)
    device = torch.device("cuda")
    model = build().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    warm = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / max(1, args.warmup))
    )
    for step in range(args.steps):
        inputs, labels = signals()
        with torch.autocast("cuda", enabled=args.amp):
            loss = nn.functional.cross_entropy(model(inputs.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        warm.step()
    torch.save(model.state_dict(), os.path.join(args.out, "cnn.pt"))


if __name__ == "__main__":
    main()
