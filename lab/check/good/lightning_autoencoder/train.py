import argparse
import os

import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class LitAutoEncoder(pl.LightningModule):
    def __init__(self, hidden_dim: int = 64, learning_rate: float = 1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = nn.Sequential(nn.Linear(784, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, 3))
        self.decoder = nn.Sequential(nn.Linear(3, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, 784))

    def forward(self, x):
        return self.decoder(self.encoder(x.view(x.size(0), -1)))

    def training_step(self, batch, batch_idx):
        return self._common_step(batch, batch_idx, "train")

    def validation_step(self, batch, batch_idx):
        self._common_step(batch, batch_idx, "val")

    def test_step(self, batch, batch_idx):
        self._common_step(batch, batch_idx, "test")

    def _common_step(self, batch, batch_idx, stage):
        (x,) = batch
        loss = F.mse_loss(self(x), x.view(x.size(0), -1))
        self.log(f"{stage}_loss", loss, on_step=stage == "train", prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.learning_rate)


class Strokes(pl.LightningDataModule):
    def __init__(self, batch_size: int = 128):
        super().__init__()
        self.batch_size = batch_size

    def prepare_data(self):
        os.makedirs("cache", exist_ok=True)
        if not os.path.exists("cache/strokes.pt"):
            torch.save(torch.rand(6000, 28, 28).gt(0.8).float(), "cache/strokes.pt")

    def setup(self, stage):
        full = TensorDataset(torch.load("cache/strokes.pt"))
        self.train, self.val, self.test = random_split(full, [5000, 500, 500])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=self.batch_size)

    def test_dataloader(self):
        return DataLoader(self.test, batch_size=self.batch_size)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["fit", "test"])
    parser.add_argument("--max-epochs", type=int, default=10)
    parser.add_argument("--hidden-dim", type=int, default=64)
    args = parser.parse_args()
    callbacks = [ModelCheckpoint(monitor="val_loss"), EarlyStopping("val_loss", patience=3)]
    trainer = pl.Trainer(max_epochs=args.max_epochs, callbacks=callbacks, accelerator="auto")
    model, data = LitAutoEncoder(hidden_dim=args.hidden_dim), Strokes()
    if args.command == "fit":
        trainer.fit(model, datamodule=data)
        trainer.test(ckpt_path="best", datamodule=data)
    else:
        trainer.test(model, datamodule=data)


if __name__ == "__main__":
    main()
