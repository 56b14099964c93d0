"""Rain segmentation on synthetic radar fields; keeps an averaged copy of the weights."""

import argparse
import copy
import os
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1),
            nn.GroupNorm(4, outputs),
            nn.GELU(),
        )

    def forward(self, x):
        return self.body(x)


class SmallUNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.down = Block(1, width)
        self.middle = Block(width, 2 * width)
        self.up = Block(3 * width, width)
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        first = self.down(x)
        second = self.middle(F.max_pool2d(first, 2))
        second = F.interpolate(second, scale_factor=2)
        return self.head(self.up(torch.cat([first, second], dim=1)))


def batch(size, side, rng):
    field = rng.standard_normal((size, 1, side, side)).astype(np.float32)
    mask = (np.abs(field) > 1).astype(np.float32)
    return torch.from_numpy(field), torch.from_numpy(mask)


class Averaged:
    def __init__(self, model, decay=0.999):
        self.model = copy.deepcopy(model).eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for mine, theirs in zip(self.model.parameters(), model.parameters()):
            mine.lerp_(theirs, 1 - self.decay)


class Run:
    def __init__(self, output):
        self.output = output
        self.weights = os.path.join(output, "weights")
        os.makedirs(output, exist_ok=True)

    def note(self, line):
        with open(os.path.join(self.output, "log.txt"), "a") as handle:
            handle.write(line + "\n")

    def keep(self, name, model):
        torch.save(model.state_dict(), os.path.join(self.weights, name + ".pt"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", default="runs/default")
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    run = Run(args.output)
    model = SmallUNet().to(device)
    averaged = Averaged(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    for step in range(args.steps):
        field, mask = (tensor.to(device) for tensor in batch(4, 32, rng))
        loss = F.binary_cross_entropy_with_logits(model(field), mask)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        averaged.update(model)
        if step % 10 == 0:
            run.note(f"{step} {loss.item():.5f}")
    run.keep("averaged", averaged.model)
    run.keep("last", model)


if __name__ == "__main__":
    main()
