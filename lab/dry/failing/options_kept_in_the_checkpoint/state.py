from dataclasses import dataclass, field

import torch


@dataclass
class Progress:
    epoch: int = 0
    losses: list = field(default_factory=list)


def keep(path, model, optimizer, progress):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "progress": progress}
    torch.save(state, path)


def recall(path, model, optimizer=None):
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state["model"])
    if optimizer is not None:
        optimizer.load_state_dict(state["optimizer"])
    return state["progress"]
