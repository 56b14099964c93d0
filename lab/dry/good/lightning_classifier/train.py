import argparse

import lightning as L
import torch
import torchmetrics
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Blobs(L.LightningDataModule):
    def setup(self, stage):
        centers = 4 * torch.randn(5, 16, generator=torch.Generator().manual_seed(0))
        labels = torch.randint(0, 5, (700,))
        points = centers[labels] + torch.randn(700, 16)
        self.parts = [
            TensorDataset(points[a:b], labels[a:b]) for a, b in ((0, 500), (500, 600), (600, 700))
        ]

    def train_dataloader(self):
        return DataLoader(self.parts[0], batch_size=32, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.parts[1], batch_size=64)

    def test_dataloader(self):
        return DataLoader(self.parts[2], batch_size=64)


class Classifier(L.LightningModule):
    def __init__(self, hidden: int = 32, lr: float = 1e-2):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(16, hidden), nn.ReLU(), nn.Linear(hidden, 5))
        self.accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=5)

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        points, labels = batch
        loss = nn.functional.cross_entropy(self(points), labels)
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        self._shared(batch, "val")

    def test_step(self, batch, batch_idx):
        self._shared(batch, "test")

    def _shared(self, batch, stage):
        points, labels = batch
        logits = self(points)
        self.accuracy(logits, labels)
        self.log(f"{stage}_loss", nn.functional.cross_entropy(logits, labels))
        self.log(f"{stage}_acc", self.accuracy, prog_bar=True)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "monitor": "val_loss"}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-epochs", type=int, default=10)
    args = parser.parse_args()
    L.seed_everything(7)
    best = ModelCheckpoint(monitor="val_acc", mode="max", filename="{epoch}-{val_acc:.2f}")
    trainer = L.Trainer(
        max_epochs=args.max_epochs,
        accelerator="cpu",
        callbacks=[best, EarlyStopping("val_loss"), LearningRateMonitor()],
        logger=L.pytorch.loggers.CSVLogger("logs"),
        gradient_clip_val=1.0,
    )
    data = Blobs()
    trainer.fit(Classifier(), datamodule=data)
    trainer.test(ckpt_path="best", datamodule=data)


if __name__ == "__main__":
    main()
