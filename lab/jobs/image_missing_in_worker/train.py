"""Classify tiny grey images listed in a manifest."""
import json

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Manifest(Dataset):
    def __init__(self, path):
        with open(path) as f:
            self.items = json.load(f)["samples"]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        item = self.items[i]
        image = np.fromfile(item["file"], dtype=np.uint8).reshape(8, 8)
        return torch.from_numpy(image).float() / 255, item["label"]


def make_images():
    """What the download step leaves behind."""
    rng = np.random.default_rng(0)
    for name in ("cat_001", "cat_002", "dog_001", "dog_002", "dog_003"):
        rng.integers(0, 256, size=64, dtype=np.uint8).tofile(f"images/{name}.raw")


def main():
    make_images()
    dataset = Manifest("manifest.json")
    print(f"=> {len(dataset)} samples")
    loader = DataLoader(dataset, batch_size=2, num_workers=1)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(3):
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(f"epoch {epoch} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
