"""Flower pictures as vectors, read by the split files."""

import csv
from pathlib import Path

import torch
from torch.utils.data import Dataset

SPLITS = Path(__file__).resolve().parent.parent / "splits"
NAMES = ("rose", "tulip", "daisy")


class Flowers(Dataset):
    def __init__(self, split: str, size: int = 32) -> None:
        self.size = size
        with open(SPLITS / f"{split}.csv", newline="") as handle:
            self.rows = list(csv.DictReader(handle))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int):
        row = self.rows[index]
        generator = torch.Generator().manual_seed(int(row["image_id"]))
        image = torch.rand(3, self.size, self.size, generator=generator)
        return image, NAMES.index(row["label"])
