"""Pairwise ranking model for search results."""

import argparse
import json
import os
import time

import numpy as np
import torch
from torch import nn


def make_pairs(count, features, rng):
    weights = rng.normal(size=features)
    left = rng.normal(size=(count, features))
    right = rng.normal(size=(count, features))
    better = (left @ weights > right @ weights).astype(np.float32)
    return [torch.tensor(array, dtype=torch.float32) for array in (left, right, better)]


class Ranker(nn.Module):
    def __init__(self, features, hidden=64):
        super().__init__()
        self.score = nn.Sequential(
            nn.Linear(features, hidden), nn.ReLU(), nn.Dropout(0.1), nn.Linear(hidden, 1)
        )

    def forward(self, left, right):
        return (self.score(left) - self.score(right)).squeeze(-1)


def accuracy(model, left, right, better):
    model.eval()
    with torch.no_grad():
        return ((model(left, right) > 0).float() == better).float().mean().item()


def publish(model, metrics, features):
    """Trace the scorer and lay it where the serving fleet looks for it."""
    folder = os.environ["OUTPUT_DIR"]
    traced = torch.jit.trace(model.score.cpu().eval(), torch.zeros(1, features))
    traced.save(os.path.join(folder, "ranker.ts"))
    manifest = {
        "name": os.environ["RUN_NAME"],
        "stage": os.environ.get("STAGE", "canary"),
        "registry": os.environ["MODEL_REGISTRY"],
        "metrics": metrics,
        "time": time.time(),
    }
    with open(os.path.join(folder, "manifest.json"), "w") as handle:
        json.dump(manifest, handle)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=int(os.getenv("SEED", "0")))
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    train = [t.to(device) for t in make_pairs(4096, args.features, rng)]
    held = [t.to(device) for t in make_pairs(512, args.features, rng)]
    model = Ranker(args.features).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss_of = nn.BCEWithLogitsLoss()
    for round_ in range(args.rounds):
        model.train()
        rows = torch.randint(0, 4096, (256,), device=device)
        loss = loss_of(model(train[0][rows], train[1][rows]), train[2][rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if round_ % 50 == 0:
            print(round_, loss.item())
    publish(model, {"accuracy": accuracy(model, *held)}, args.features)


if __name__ == "__main__":
    main()
