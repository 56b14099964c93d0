import argparse
import json
import random
from pathlib import Path

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR

from checkpoints import newest, prune, write


def build(config):
    sizes = [12, *config["hidden"]]
    layers = []
    for before, after in zip(sizes, sizes[1:]):
        layers += [nn.Linear(before, after), nn.LeakyReLU(0.1)]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], 1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    config = json.loads(parser.parse_args().config.read_text())
    random.seed(config["seed"])
    torch.manual_seed(config["seed"])
    folder = Path(config["folder"])
    model = build(config)
    optimizer = torch.optim.NAdam(model.parameters(), lr=config["lr"])
    scheduler = CosineAnnealingLR(optimizer, T_max=config["epochs"])
    start = 0
    if (path := newest(folder)) is not None:
        state = torch.load(path, weights_only=False)
        for name, part in (("model", model), ("optimizer", optimizer), ("scheduler", scheduler)):
            part.load_state_dict(state[name])
        torch.set_rng_state(state["rng"])
        start = state["epoch"] + 1
        print("resumed from", path)
    for epoch in range(start, config["epochs"]):
        for _ in range(25):
            x = torch.randn(32, 12)
            loss = nn.functional.binary_cross_entropy_with_logits(model(x), (x[:, :1] > 0).float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        write(
            folder / f"epoch_{epoch:03d}.pt",
            model=model.state_dict(),
            optimizer=optimizer.state_dict(),
            scheduler=scheduler.state_dict(),
            rng=torch.get_rng_state(),
            epoch=epoch,
        )
        prune(folder, config["keep"])
        print(f"epoch {epoch} loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.6f}")


main()
