import os
import sys

import torch
from torch import nn


def checkpoint_path(run):
    return os.path.join(run, "checkpoint_last.pt")


def first_run(run):
    """The former job of this run; the node went down while the file was written."""
    os.makedirs(run)
    model = nn.Linear(256, 256)
    torch.save({"model": model.state_dict(), "step": 12000}, checkpoint_path(run))
    with open(checkpoint_path(run), "r+b") as f:
        f.truncate(os.path.getsize(checkpoint_path(run)) * 3 // 4)


def main(run):
    first_run(run)
    model = nn.Linear(256, 256)
    print("Resuming from", checkpoint_path(run))
    state = torch.load(checkpoint_path(run), map_location="cpu")
    model.load_state_dict(state["model"])
    for step in range(state["step"], state["step"] + 10):
        print("step", step, model(torch.randn(1, 256)).mean().item())


if __name__ == "__main__":
    main(sys.argv[1])
