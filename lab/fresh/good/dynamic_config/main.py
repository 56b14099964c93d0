import argparse
import pathlib
import types

import numpy as np
import torch
from torch import nn

import config

MODELS = {}


def register(name):
    def wrap(cls):
        MODELS[name] = cls
        cls.kind = name
        return cls
    return wrap


@register("gated")
class Gated(nn.Module):
    def __init__(self, context, width, depth):
        super().__init__()
        for i in range(depth):
            setattr(self, f"layer{i}", nn.Linear(context if i == 0 else width, 2 * width))
        self.depth = depth
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        for i in range(self.depth):
            x = nn.functional.glu(getattr(self, f"layer{i}")(x))
        return self.out(x)[:, 0]


class Meter(types.SimpleNamespace):
    def add(self, **values):
        for name, value in values.items():
            setattr(self, name, getattr(self, name, 0.0) + value)
            self.count = getattr(self, "count", 0) + 1


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--config", type=pathlib.Path, default=pathlib.Path(__file__).with_name("default.json"))
    p.add_argument("--set", action="append", default=[], dest="changes")
    args, rest = p.parse_known_args()
    cfg = config.load(args.config)
    for change in args.changes + rest:
        cfg.set(*change.split("=", 1))
    series = torch.from_numpy(np.load(cfg.data.path).astype(np.float32))
    series = (series - series.mean()) / series.std()
    blocks = series.unfold(0, cfg.data.context + 1, 1)
    x, y = blocks[:, :-1], blocks[:, -1]
    model = MODELS[cfg.model.kind](cfg.data.context, cfg.model.width, cfg.model.depth)
    optimizer = getattr(torch.optim, cfg.train.optimizer)(
        model.parameters(), lr=cfg.train.lr, **dict(cfg.train.options.items()))
    if cfg.train.warmup:
        raise SystemExit("warmup is not done yet: " + cfg.train.warmup)
    for epoch in range(cfg.train.epochs):
        meter = Meter()
        for part in torch.randperm(len(x)).split(cfg.train.batch or 256):
            loss = nn.functional.mse_loss(model(x[part]), y[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            meter.add(loss=loss.item())
        print(epoch, model.kind, meter.loss / meter.count, cfg.extra.note)


if __name__ == "__main__":
    main()
