"""A LightningModule that names the pitch of noisy tones with a 1-d convolutional network and a step schedule by epochs."""

import logging
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


class ToneNet(L.LightningModule):
    def __init__(self, classes=8, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.features = nn.Sequential(
            nn.Conv1d(1, 16, 9, stride=2, padding=4),
            nn.BatchNorm1d(16),
            nn.ReLU(),
            nn.Conv1d(16, 32, 9, stride=2, padding=4),
            nn.BatchNorm1d(32),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(1),
        )
        self.classifier = nn.Linear(32, classes)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_acc", (self(x).argmax(1) == y).float().mean())

    def on_validation_epoch_end(self):
        print(f"epoch {self.current_epoch} val_acc {self.trainer.callback_metrics['val_acc']:.4f}")

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.3)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "epoch"}}


def tones(n, classes=8):
    y = torch.randint(0, classes, (n,))
    t = torch.arange(96) / 96
    freq = 6.0 + 1.2 * y.float()
    phase = torch.rand(n, 1) * 6.2832
    x = torch.sin(6.2832 * freq[:, None] * t + phase) + 0.8 * torch.randn(n, 96)
    return TensorDataset(x.unsqueeze(1), y)


if __name__ == "__main__":
    L.seed_everything(6)
    trainer = L.Trainer(
        max_epochs=10,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(ToneNet(), DataLoader(tones(2000), batch_size=50, shuffle=True), DataLoader(tones(600), batch_size=600))
