import argparse

import torch

from tool import __version__
from tool.compat import *


class Halving(LRScheduler):
    def get_lr(self):
        return [base * 0.5 ** (self.last_epoch // 10) for base in self.base_lrs]


def read_defaults():
    if tomllib is None:
        return {}
    try:
        with open("defaults.toml", "rb") as handle:
            return tomllib.load(handle)
    except OSError:
        return {}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--version", action="version", version=__version__)
    parser.set_defaults(**read_defaults())
    args = parser.parse_args()
    model = compile_if_there(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    schedule = Halving(optimizer)
    for part in batched(range(100), 10):
        for _ in part:
            optimizer.zero_grad()
            loss = model(torch.randn(8, 4)).square().mean()
            loss.backward()
            optimizer.step()
        schedule.step()
    print(loss.item())


if __name__ == "__main__":
    main()
