#!/usr/bin/env python
"""Anchor-free detector; the whole set-up comes from one YAML file."""

import json
import os
import random
import sys
from dataclasses import dataclass

import torch
import yaml
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Sample:
    size: tuple
    boxes: list
    labels: list


class JsonLines(Dataset):
    def __init__(self, root, name, limit=None):
        self.path = os.path.join(root, name)
        self.samples = []
        for line in self._lines():
            record = json.loads(line)
            self.samples.append(
                Sample((record["height"], record["width"]), record["boxes"], record["labels"])
            )
            if limit and len(self.samples) >= limit:
                break

    def _lines(self):
        with open(self.path, encoding="utf-8") as handle:
            yield from handle

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        sample = self.samples[index]
        target = torch.zeros(80)
        target[sample.labels] = 1.0
        return torch.randn(3, 64, 64), target


def build_model(width, classes):
    return nn.Sequential(
        nn.Conv2d(3, width, 3, stride=2, padding=1), nn.SiLU(),
        nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.SiLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * width, classes),
    )


def loaders(config):
    data = config["data"]
    for split in ("train", "val"):
        dataset = JsonLines(data["root"], data[split])
        yield DataLoader(
            dataset, batch_size=32, shuffle=split == "train", num_workers=data["workers"]
        )


def main(path):
    with open(path) as handle:
        config = yaml.safe_load(handle)
    random.seed(config["seed"])
    torch.manual_seed(config["seed"])
    os.makedirs(config["output"], exist_ok=True)
    train, val = loaders(config)
    device = torch.device("cuda")
    model = build_model(**config["model"]).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config["optim"]["lr"])
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(config["optim"]["epochs"]):
        model.train()
        for images, targets in train:
            loss = criterion(model(images.to(device)), targets.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            losses = [criterion(model(x.to(device)), y.to(device)).item() for x, y in val]
        print(epoch, sum(losses) / max(1, len(losses)))
    torch.save(model.state_dict(), os.path.join(config["output"], "last.pt"))


if __name__ == "__main__":
    main(sys.argv[1])
