import argparse
import ast

import torch
from torch import nn

import zoo


class Settings(dict):
    """A dictionary whose keys are attributes too."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    __setattr__ = dict.__setitem__


def defaults():
    return Settings(train=Settings(lr=0.1, steps=100, clip=None), model=Settings())


def override(settings, text):
    path, _, value = text.partition("=")
    *parents, last = path.split(".")
    for name in parents:
        settings = settings.setdefault(name, Settings())
    try:
        settings[last] = ast.literal_eval(value)
    except (ValueError, SyntaxError):
        settings[last] = value


class Meter:
    def __init__(self, *names):
        self.__dict__.update(dict.fromkeys(names, 0.0))

    def add(self, **values):
        for name, value in values.items():
            setattr(self, name, getattr(self, name) + value)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="flat")
    parser.add_argument("--set", dest="changes", action="append", default=[])
    args = parser.parse_args()
    settings = defaults()
    for change in args.changes:
        override(settings, change)
    model = zoo.build(args.model, **settings.model)
    optimizer = torch.optim.SGD(model.parameters(), lr=settings.train.lr)
    meter = Meter("loss", "right")
    for _ in range(settings.train.steps):
        x = torch.randn(16, 1, 8, 8)
        y = (x.mean((1, 2, 3)) > 0).long()
        logits = model(x)
        loss = nn.functional.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        if settings.train.clip:
            nn.utils.clip_grad_norm_(model.parameters(), settings.train.clip)
        optimizer.step()
        meter.add(loss=loss.item(), right=(logits.argmax(1) == y).sum().item())
    print(meter.loss, meter.right, getattr(model, "steps", "no count"))


if __name__ == "__main__":
    main()
