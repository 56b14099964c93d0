import argparse

import torch
from torch import nn


def restore(path, model):
    print(f"=> loading {path}", flush=True)
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state["model"])
    return state["epoch"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkpoint", required=True)
    args = parser.parse_args()
    model = nn.Linear(64, 256)
    epoch = restore(args.checkpoint, model)
    with torch.no_grad():
        scores = model(torch.randn(100, 64))
    print(f"epoch {epoch} mean score {scores.mean():.4f}")


if __name__ == "__main__":
    main()
