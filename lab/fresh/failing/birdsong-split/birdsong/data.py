import os

import lightning as L
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

SPLITS = {"fit": "Train.npz", "validate": "Val.npz", "test": "Test.npz"}


class Clips(Dataset):
    """Log-mel clips of four seconds."""

    def __init__(self, path, crop=128, train=False):
        archive = np.load(path)
        self.mels, self.species = archive["mels"], archive["species"]
        self.crop, self.train = crop, train

    def __len__(self):
        return len(self.species)

    def __getitem__(self, i):
        mel = self.mels[i]
        room = mel.shape[-1] - self.crop
        start = np.random.randint(room + 1) if self.train else room // 2
        return torch.from_numpy(mel[None, :, start:start + self.crop]).float(), int(self.species[i])


class Birds(L.LightningDataModule):
    def __init__(self, root, batch_size=32, workers=4):
        super().__init__()
        self.root, self.batch_size, self.workers = root, batch_size, workers
        self.sets = {}

    def setup(self, stage):
        wanted = ["fit", "validate"] if stage == "fit" else [str(getattr(stage, "value", stage))]
        for name in wanted:
            path = os.path.join(self.root, "mel128", SPLITS[name])
            self.sets[name] = Clips(path, train=name == "fit")

    def _loader(self, name):
        return DataLoader(self.sets[name], self.batch_size, shuffle=name == "fit",
                          num_workers=self.workers)

    def train_dataloader(self):
        return self._loader("fit")

    def val_dataloader(self):
        return self._loader("validate")

    def test_dataloader(self):
        return self._loader("test")
