"""A transformer over piano rolls; samples are drawn when it is trained."""
import argparse
import copy
import pathlib

import numpy as np
import torch
from torch import nn

PITCHES = 88


class Composer(nn.Module):
    def __init__(self, width=128, layers=3, length=256):
        super().__init__()
        self.inp = nn.Linear(PITCHES, width)
        self.position = nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(width, PITCHES)

    def forward(self, x):
        n = x.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(n, device=x.device)
        return self.out(self.body(self.inp(x) + self.position[:n], mask=mask, is_causal=True))


class Average:
    """Exponential moving average of the weights."""

    def __init__(self, model, decay):
        self.model, self.decay = copy.deepcopy(model).eval(), decay

    @torch.no_grad()
    def update(self, model):
        for mine, other in zip(self.model.parameters(), model.parameters()):
            mine.lerp_(other, 1 - self.decay)


@torch.no_grad()
def sample(model, count, steps, device):
    model.eval()
    roll = torch.zeros(count, 1, PITCHES, device=device)
    for _ in range(steps):
        roll = torch.cat([roll, torch.bernoulli(torch.sigmoid(model(roll)[:, -1:]))], 1)
    return roll[:, 1:].cpu().numpy().astype(np.uint8)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--rolls", type=pathlib.Path, required=True)
    p.add_argument("--out", type=pathlib.Path, default=pathlib.Path("/scratch/music"))
    p.add_argument("--epochs", type=int, default=250)
    p.add_argument("--ema", action=argparse.BooleanOptionalAction, default=True)
    p.add_argument("--decay", type=float, default=0.999)
    p.add_argument("--samples", type=int, default=0)
    args = p.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rolls = torch.from_numpy(np.load(args.rolls)["rolls"]).float()
    model = Composer().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-4)
    if args.ema:
        average = Average(model, args.decay)
    for epoch in range(args.epochs):
        model.train()
        for part in torch.randperm(len(rolls)).split(32):
            x = rolls[part].to(device)
            loss = nn.functional.binary_cross_entropy_with_logits(model(x[:, :-1]), x[:, 1:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if args.ema:
                average.update(model)
        print(epoch, loss.item(), flush=True)
        torch.save(model.state_dict(), args.out / "composer.pt")
    if args.samples:
        final = average.model if average else model
        np.save(args.out / "samples.npy", sample(final, args.samples, 128, device))


if __name__ == "__main__":
    main()
