import json
import sys

import torch
import yaml

from lib import PROJECT
from lib.mlp import mlp


def main(path, *rest):
    with open(path) as handle:
        config = yaml.safe_load(handle) or {}
    steps = config.pop("steps", 100)
    model = mlp(3, 3, **config)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        x = torch.randn(64, 3)
        loss = (model(x) - torch.linalg.cross(x, x.roll(1, 1))).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save(model.state_dict(), PROJECT / "out" / "model.pt")
    with open("out/loss.json", "w") as handle:
        json.dump({"loss": loss.item(), "rest": rest}, handle)


if __name__ == "__main__":
    main(*sys.argv[1:])
