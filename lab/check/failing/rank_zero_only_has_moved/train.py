import argparse

import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from helpers import announce


class Regressor(pl.LightningModule):
    def __init__(self, inputs=8, width=64, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(inputs, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x)

    def _loss(self, batch, name):
        x, y = batch
        loss = nn.functional.mse_loss(self(x), y)
        self.log(f"{name}_loss", loss)
        return loss

    def training_step(self, batch, batch_idx):
        return self._loss(batch, "train")

    def validation_step(self, batch, batch_idx):
        return self._loss(batch, "val")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


class Synthetic(pl.LightningDataModule):
    def __init__(self, rows=4096, batch_size=128):
        super().__init__()
        self.rows, self.batch_size = rows, batch_size

    def setup(self, stage=None):
        x = torch.randn(self.rows, 8)
        full = TensorDataset(x, x.pow(2).sum(1, keepdim=True))
        self.train_set, self.val_set = torch.utils.data.random_split(full, [0.9, 0.1])

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=self.batch_size)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    pl.seed_everything(3)
    trainer = pl.Trainer(max_epochs=args.max_epochs, default_root_dir="/scratch/alice/pl")
    trainer.fit(Regressor(lr=args.lr), datamodule=Synthetic())
    announce(trainer.callback_metrics)


if __name__ == "__main__":
    main()
