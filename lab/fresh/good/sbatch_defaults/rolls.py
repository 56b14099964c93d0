import argparse
import os

import numpy as np
import torch
from torch import nn

PITCHES = 88


def make(width, heads):
    layer = nn.TransformerEncoderLayer(width, heads, 2 * width, batch_first=True)
    return nn.ModuleDict({"inp": nn.Linear(PITCHES, width),
                          "body": nn.TransformerEncoder(layer, 2), "out": nn.Linear(width, PITCHES)})


def apply(model, x):
    mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1]).to(x.device)
    return model["out"](model["body"](model["inp"](x), mask))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", required=True)
    p.add_argument("--ckpt", required=True)
    p.add_argument("--resume")
    p.add_argument("--width", type=int, default=32)
    p.add_argument("--heads", type=int, default=4)
    p.add_argument("--epochs", type=int, default=60)
    args = p.parse_args()
    rolls = torch.from_numpy(np.load(args.data)["rolls"]).float()
    model = make(args.width, args.heads)
    optimizer = torch.optim.Adam(model.parameters(), 1e-4)
    start = 0
    if args.resume:
        saved = torch.load(args.resume)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        start = saved["epoch"] + 1
    for epoch in range(start, args.epochs):
        for x in rolls.split(16):
            optimizer.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(apply(model, x[:, :-1]), x[:, 1:]).backward()
            optimizer.step()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch,
                    "width": args.width, "heads": args.heads}, os.path.join(args.ckpt, "model.pt"))


if __name__ == "__main__":
    main()
