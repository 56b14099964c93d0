"""Character model with an LSTM."""

import argparse

import torch
from torch import nn


class CharModel(nn.Module):
    def __init__(self, symbols, width=128):
        super().__init__()
        self.embed = nn.Embedding(symbols, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.out = nn.Linear(width, symbols)

    def forward(self, ids, state=None):
        hidden, state = self.lstm(self.embed(ids), state)
        return self.out(hidden), state


def read(path):
    with open(path) as handle:
        text = handle.read()
    symbols = sorted(set(text))
    index = {symbol: number for number, symbol in enumerate(symbols)}
    return torch.tensor([index[symbol] for symbol in text]), symbols


def batch_of(ids, size, length):
    starts = torch.randint(0, len(ids) - length - 1, (size,))
    inputs = torch.stack([ids[start : start + length] for start in starts])
    targets = torch.stack([ids[start + 1 : start + length + 1] for start in starts])
    return inputs, targets


def make_optimizer(model, lr):
    decay = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": decay, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}]
    return torch.optim.Adam(groups, lr=lr, fused=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args()
    ids, symbols = read(args.data)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = CharModel(len(symbols)).to(device)
    optimizer = make_optimizer(model, args.lr)
    for step in range(args.steps):
        inputs, targets = batch_of(ids, 32, 24)
        logits, _ = model(inputs.to(device))
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.to(device).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 250 == 0:
            print(step, round(loss.item(), 4))


if __name__ == "__main__":
    main()
