"""Transformer encoder on an associative recall task."""

from argparse import ArgumentDefaultsHelpFormatter, ArgumentParser
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Settings:
    layers: int
    hidden: int
    heads: int
    dropout: float
    steps: int


def settings_from(argv=None):
    parser = ArgumentParser(formatter_class=ArgumentDefaultsHelpFormatter)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--steps", type=int, default=5000)
    return Settings(**vars(parser.parse_args(argv)))


class Recall(nn.Module):
    def __init__(self, settings, symbols=64):
        super().__init__()
        self.embed = nn.Embedding(symbols, settings.hidden)
        layer = nn.TransformerEncoderLayer(
            settings.hidden, settings.heads, 4 * settings.hidden, settings.dropout, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, settings.layers)
        self.out = nn.Linear(settings.hidden, symbols)

    def forward(self, ids):
        return self.out(self.encoder(self.embed(ids))[:, -1])


def batch(size=128, pairs=8, symbols=64):
    keys = torch.stack([torch.randperm(symbols)[:pairs] for _ in range(size)])
    values = torch.randint(0, symbols, (size, pairs))
    asked = torch.randint(0, pairs, (size, 1))
    ids = torch.cat([torch.stack([keys, values], 2).flatten(1), keys.gather(1, asked)], 1)
    return ids, values.gather(1, asked).squeeze(1)


def main():
    settings = settings_from()
    device = torch.device("cuda")
    model = Recall(settings).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(settings.steps):
        ids, answer = batch()
        loss = nn.functional.cross_entropy(model(ids.to(device)), answer.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 500 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
