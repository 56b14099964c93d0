import sys

import torch
from torch import nn

OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
DEFAULTS = {"optim": "Adamw", "lr": 1e-3, "steps": 50}


def parse(argv):
    options = dict(DEFAULTS)
    for item in argv:
        key, _, value = item.partition("=")
        options[key] = type(DEFAULTS[key])(value)
    return options


def main():
    options = parse(sys.argv[1:])
    print("options:", options)
    model = nn.Linear(3, 3)
    optimizer = OPTIMIZERS[options["optim"]](model.parameters(), lr=options["lr"])
    for step in range(options["steps"]):
        loss = model(torch.randn(8, 3)).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())


main()
