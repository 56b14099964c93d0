"""Generates street names with a character model."""

import argparse
import random

import torch
from torch import nn

END = "\n"


class NameModel(nn.Module):
    def __init__(self, symbols, width=64):
        super().__init__()
        self.embed = nn.Embedding(symbols, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, symbols)

    def forward(self, ids, state=None):
        hidden, state = self.rnn(self.embed(ids), state)
        return self.out(hidden), state


def read_names(path):
    with open(path, encoding="utf-8") as handle:
        return [line.strip() for line in handle if line.strip()]


def encode(name, index):
    return torch.tensor([[index[symbol] for symbol in END + name + END]])


@torch.no_grad()
def generate(model, symbols, limit=30):
    ids, state, name = torch.tensor([[symbols.index(END)]]), None, ""
    while len(name) < limit:
        logits, state = model(ids, state)
        ids = torch.multinomial(logits[0, -1].softmax(-1), 1).unsqueeze(0)
        symbol = symbols[ids.item()]
        if symbol == END:
            break
        name += symbol
    return name


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--names", default="names.txt")
    parser.add_argument("--steps", type=int, default=3000)
    args = parser.parse_args()
    names = read_names(args.names)
    symbols = sorted(set("".join(names)) | {END})
    index = {symbol: number for number, symbol in enumerate(symbols)}
    model = NameModel(len(symbols))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(args.steps):
        ids = encode(random.choice(names), index)
        logits, _ = model(ids[:, :-1])
        loss = nn.functional.cross_entropy(logits[0], ids[0, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for _ in range(5):
        print(generate(model, symbols))


if __name__ == "__main__":
    main()
