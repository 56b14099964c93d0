"""Grades of diabetic retinopathy; the best model of the run is evaluated at the end."""
import argparse
import dataclasses
import math
import os
import time

import numpy as np
import torch
from sklearn.metrics import cohen_kappa_score
from torch import nn


@dataclasses.dataclass
class Settings:
    images: str
    work: str
    lr: float = 3e-4
    epochs: int = 50
    batch: int = 32
    width: int = 32


@dataclasses.dataclass
class Progress:
    epoch: int = 0
    best: float = -math.inf
    seconds: float = 0.0


def settings():
    parser = argparse.ArgumentParser(description=__doc__)
    for field in dataclasses.fields(Settings):
        required = field.default is dataclasses.MISSING
        parser.add_argument("--" + field.name, type=field.type, required=required,
                            default=None if required else field.default)
    return Settings(**vars(parser.parse_args()))


class Grader(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, width, 5, 2), nn.GroupNorm(4, width), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, 2), nn.GroupNorm(4, 2 * width), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * width, 5))

    def forward(self, x):
        return self.layers(x)


class Checkpoints:
    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, "best.ckpt")

    def save(self, model, progress, chosen):
        torch.save({"model": model.state_dict(), "progress": progress, "settings": chosen}, self.path)

    def restore(self, model):
        saved = torch.load(self.path, map_location="cpu")
        model.load_state_dict(saved["model"])
        return saved["progress"]


def predict(model, x, device):
    model.eval()
    with torch.no_grad():
        return torch.cat([model(part.to(device)).argmax(1).cpu() for part in x.split(64)]).numpy()


def main():
    chosen = settings()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with np.load(chosen.images) as f:
        data = {name: torch.from_numpy(f[name]) for name in f.files}
    model = Grader(chosen.width).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=chosen.lr)
    progress, checkpoints = Progress(), Checkpoints(chosen.work)
    began = time.monotonic()
    for progress.epoch in range(chosen.epochs):
        model.train()
        for part in torch.randperm(len(data["x_train"])).split(chosen.batch):
            optimizer.zero_grad()
            logits = model(data["x_train"][part].to(device))
            nn.functional.cross_entropy(logits, data["y_train"][part].to(device)).backward()
            optimizer.step()
        kappa = cohen_kappa_score(data["y_val"], predict(model, data["x_val"], device), weights="quadratic")
        if kappa > progress.best or progress.epoch == 0:
            progress.best, progress.seconds = kappa, time.monotonic() - began
            checkpoints.save(model, progress, chosen)
        print(progress, flush=True)
    at = checkpoints.restore(model)
    kappa = cohen_kappa_score(data["y_test"], predict(model, data["x_test"], device), weights="quadratic")
    print(f"test kappa {kappa:.3f} with the weights of epoch {at.epoch}")


if __name__ == "__main__":
    main()
