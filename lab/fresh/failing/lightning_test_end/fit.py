import argparse

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch.utils.data import DataLoader, TensorDataset, random_split

from model.tabular import Tabular


class Prices(pl.LightningDataModule):
    def __init__(self, rows=2000, features=12, batch_size=64):
        super().__init__()
        self.rows, self.features, self.batch_size = rows, features, batch_size

    def setup(self, stage=None):
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(self.rows, self.features, generator=generator)
        y = x[:, 0] * 2 - x[:, 1] + 0.1 * torch.randn(self.rows, generator=generator)
        parts = [0.7, 0.15, 0.15]
        self.train, self.val, self.held = random_split(TensorDataset(x, y), parts, generator)

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=self.batch_size)

    def test_dataloader(self):
        return DataLoader(self.held, batch_size=self.batch_size)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--hidden", type=int, default=64)
    args = parser.parse_args()
    pl.seed_everything(1)
    data = Prices()
    model = Tabular(data.features, args.hidden)
    best = ModelCheckpoint(monitor="val_loss", mode="min")
    trainer = pl.Trainer(
        max_epochs=args.epochs, accelerator="auto", devices=1,
        callbacks=[best, EarlyStopping("val_loss", patience=5)], logger=False,
    )
    trainer.fit(model, datamodule=data)
    trainer.test(model, datamodule=data)


if __name__ == "__main__":
    main()
