from __future__ import annotations

import argparse
import csv
import os
import sys
from collections import defaultdict

import torch
from torch import nn


def build_model(name: str, **kwargs) -> nn.Module:
    return {"linear": lambda classes=10: nn.Linear(32, classes), "mlp": mlp}[name](**kwargs)


def mlp(classes: int = 10, width: int = 64) -> nn.Module:
    return nn.Sequential(nn.Linear(32, width), nn.ReLU(), nn.Linear(width, classes))


@torch.inference_mode()
def evaluate(model: nn.Module, split: str) -> dict[str, float]:
    generator = torch.Generator().manual_seed(sum(map(ord, split)))
    x = torch.randn(512, 32, generator=generator)
    y = torch.randint(0, 10, (512,), generator=generator)
    logits = model.eval()(x)
    return {
        "accuracy": (logits.argmax(1) == y).float().mean().item(),
        "loss": nn.functional.cross_entropy(logits, y).item(),
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint")
    parser.add_argument("--splits", nargs="+", default=["val"])
    parser.add_argument("--csv")
    args = parser.parse_args(argv)
    if not os.path.exists(args.checkpoint):
        print(f"{args.checkpoint} is not there", file=sys.stderr)
        return 2
    checkpoint = torch.load(args.checkpoint, map_location="cpu")
    model = build_model(checkpoint.get("arch", "linear"), **checkpoint.get("kwargs", {}))
    model.load_state_dict(checkpoint["model"])
    rows: defaultdict[str, dict] = defaultdict(dict)
    for split in args.splits:
        for metric, value in evaluate(model, split).items():
            rows[metric][split] = value
    for metric, values in rows.items():
        print(metric.rjust(10), *(f"{values[split]:.4f}" for split in args.splits))
    if args.csv:
        os.makedirs(os.path.dirname(args.csv), exist_ok=True)
        with open(args.csv, "w", newline="") as handle:
            writer = csv.writer(handle)
            writer.writerow(["metric", *args.splits])
            writer.writerows([metric, *values.values()] for metric, values in rows.items())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
