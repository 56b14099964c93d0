"""Reverse a sequence with attention; the maps are kept for the figures."""
import argparse
import os
import time

import numpy as np
import torch
from torch import nn


class Reverser(nn.Module):
    def __init__(self, symbols, width=64, length=64):
        super().__init__()
        self.embed = nn.Embedding(symbols, width)
        self.place = nn.Embedding(length, width)
        self.attend = nn.MultiheadAttention(width, 4, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, symbols)
        self.last_map = None

    def forward(self, x, keep=False):
        at = torch.arange(x.shape[1], device=x.device)
        e = self.embed(x) + self.place(at)
        y, weights = self.attend(e, e, e, need_weights=keep)
        if keep:
            self.last_map = weights.detach()
        return self.out(self.norm(e + y))


class Best:
    """Keeps the weights with the lowest loss in memory."""

    def __init__(self):
        self.loss, self.state = float("inf"), None

    def offer(self, loss, model):
        if loss < self.loss:
            self.loss = loss
            self.state = {k: v.detach().cpu().clone() for k, v in model.state_dict().items()}

    def restore(self, model):
        if self.state is not None:
            model.load_state_dict(self.state)
        return model


def make(count, length, symbols, device):
    x = torch.randint(symbols, (count, length), device=device)
    return x, x.flip(1)


def figures(model, symbols, device, path, lengths=(8, 16, 32)):
    model.eval()
    maps = {}
    with torch.no_grad():
        for length in lengths:
            x, y = make(4, length, symbols, device)
            accuracy = (model(x, keep=True).argmax(-1) == y).float().mean().item()
            maps[f"map{length}"] = np.stack([m.numpy() for m in model.last_map])
            maps[f"accuracy{length}"] = np.float32(accuracy)
    np.savez(path, **maps)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=1000)
    p.add_argument("--symbols", type=int, default=16)
    p.add_argument("--export")
    args = p.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Reverser(args.symbols).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    best, began, smooth = Best(), time.time(), None
    for step in range(args.steps):
        x, y = make(32, int(torch.randint(4, 33, ())), args.symbols, device)
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        smooth = loss.item() if smooth is None else 0.99 * smooth + 0.01 * loss.item()
        if step % 1000 == 999:
            best.offer(smooth, model)
            print(step + 1, round(smooth, 4), f"{time.time() - began:.0f} s", flush=True)
    best.restore(model)
    if args.export:
        figures(model, args.symbols, device, args.export)
        print(os.path.getsize(args.export), "bytes")


if __name__ == "__main__":
    main()
