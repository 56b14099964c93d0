import argparse

import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch import nn

from birdsong.data import Birds


class Net(L.LightningModule):
    def __init__(self, species=48, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.body = nn.Sequential(
            nn.Conv2d(1, 32, 5, stride=2), nn.BatchNorm2d(32), nn.SiLU(),
            nn.Conv2d(32, 64, 3, stride=2), nn.BatchNorm2d(64), nn.SiLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, species))
        self.loss = nn.CrossEntropyLoss(label_smoothing=0.05)

    def forward(self, x):
        return self.body(x)

    def _step(self, batch, stage):
        x, y = batch
        logits = self(x)
        loss = self.loss(logits, y)
        self.log(f"{stage}_loss", loss, prog_bar=True)
        self.log(f"{stage}_acc", (logits.argmax(1) == y).float().mean(), prog_bar=True)
        return loss

    def training_step(self, batch, _):
        return self._step(batch, "train")

    def validation_step(self, batch, _):
        return self._step(batch, "val")

    def test_step(self, batch, _):
        return self._step(batch, "test")

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", required=True)
    p.add_argument("--max-epochs", type=int, default=20)
    p.add_argument("--out", default="/scratch/birdsong")
    args = p.parse_args()
    L.seed_everything(1)
    data = Birds(args.data)
    keep = ModelCheckpoint(args.out, monitor="val_acc", mode="max", save_last=True)
    trainer = L.Trainer(max_epochs=args.max_epochs, default_root_dir=args.out,
                        callbacks=[keep, EarlyStopping("val_loss", patience=12)])
    trainer.fit(Net(), datamodule=data)
    print(trainer.test(Net.load_from_checkpoint(keep.best_model_path), datamodule=data))


if __name__ == "__main__":
    main()
