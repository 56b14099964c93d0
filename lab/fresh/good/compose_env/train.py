"""Words from MFCCs, settings from the environment."""
import argparse
import os
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np
import torch
from torch import nn


def env(name, default=None, kind=str):
    def make():
        text = os.environ.get(name, "")
        if text == "" and default is not None:
            return default
        return kind(os.environ[name])
    return field(default_factory=make)


@dataclass
class Settings:
    data: Path = env("WAVE_DATA", kind=Path)
    lr: float = env("WAVE_LR", 1e-3, float)
    classes: int = env("WAVE_CLASSES", kind=int)
    epochs: int = env("WAVE_EPOCHS", 10, int)
    width: int = env("WAVE_WIDTH", 24, int)
    token: str = env("EMPTY_IS_FINE", "none")


class Net(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.body = nn.Sequential(nn.LazyConv2d(width, 3, stride=2), nn.ReLU(), nn.LazyConv2d(width, 3), nn.ReLU())
        self.head = nn.LazyLinear(classes)

    def forward(self, x):
        return self.head(self.body(x).mean((-1, -2)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", type=Path, required=True)
    out = p.parse_args().out
    s = Settings()
    print({f.name: getattr(s, f.name) for f in fields(s)})
    sets = {}
    for name in ("train", "val"):
        with np.load(s.data / f"{name}.npz") as f:
            sets[name] = torch.from_numpy(f["mfcc"]).float()[:, None], torch.from_numpy(f["word"]).long()
    model = Net(s.width, s.classes)
    with torch.no_grad():
        model(sets["train"][0][:2])
    optimizer = torch.optim.AdamW(model.parameters(), lr=s.lr)
    best, best_state = -1.0, None
    for epoch in range(s.epochs):
        model.train()
        x, y = sets["train"]
        for part in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[part]), y[part]).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            x, y = sets["val"]
            accuracy = (model(x).argmax(1) == y).float().mean().item()
        if accuracy > best:
            best, best_state = accuracy, {k: v.clone() for k, v in model.state_dict().items()}
    torch.save(best_state, out / "best.pt")
    (out / os.environ["RUN_NAME"]).with_suffix(".txt").write_text(f"{best:.4f}\n")


if __name__ == "__main__":
    main()
