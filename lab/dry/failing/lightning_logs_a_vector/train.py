import argparse

import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset

from module import Weeds


def loader(number, shuffle):
    fields = torch.rand(number, 3, 16, 16)
    weeds = (torch.rand(number, 6) < 0.3).float()
    return DataLoader(TensorDataset(fields, weeds), batch_size=32, shuffle=shuffle)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    for fold in range(args.folds):
        L.seed_everything(fold)
        trainer = L.Trainer(
            max_epochs=args.epochs,
            accelerator="cpu",
            num_sanity_val_steps=0,
            enable_checkpointing=False,
            logger=False,
        )
        trainer.fit(Weeds(), loader(256, True), loader(96, False))


if __name__ == "__main__":
    main()
