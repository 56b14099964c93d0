import argparse
import csv
import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from video import read_frame


class Frames(Dataset):
    def __init__(self, folder, size=112):
        self.folder = folder
        self.size = size
        with open(os.path.join(folder, "index.csv"), newline="") as handle:
            self.rows = [(row["file"], int(row["label"])) for row in csv.DictReader(handle)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        name, label = self.rows[index]
        pixels = read_frame(os.path.join(self.folder, name), self.size)
        return torch.from_numpy(pixels.astype(np.float32)).permute(2, 0, 1) / 255, label


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", default="frames")
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    loader = DataLoader(Frames(args.frames), batch_size=16, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5)
    )
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(args.epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
