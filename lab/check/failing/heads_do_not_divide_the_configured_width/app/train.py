import argparse
import json

import torch
from torch import nn

from app.model import PatchTransformer


def batch(config, size=64):
    labels = torch.randint(0, config["classes"], (size,))
    patches = torch.randn(size, config["patches"], 48) + labels[:, None, None] * 0.1
    return patches, labels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    parser.add_argument("--steps", type=int, default=1000)
    args = parser.parse_args()
    with open(args.config) as handle:
        config = json.load(handle)
    model = PatchTransformer(**config).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for step in range(args.steps):
        patches, labels = batch(config)
        loss = nn.functional.cross_entropy(model(patches.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
