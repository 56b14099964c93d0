"""A Lightning module learns a physical law from much data in a single epoch, validated four times on the way.

Should reach: val R2 of at least 0.95; the mean gives 0.
"""
import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
torch.set_num_threads(1)


def throws(count):
    speed, angle, height, wind = torch.rand(4, count)
    v, a, h = 10 + 20 * speed, 0.2 + 1.1 * angle, 2 * height
    up = v * torch.sin(a)
    time = (up + (up**2 + 2 * 9.81 * h).sqrt()) / 9.81
    distance = v * torch.cos(a) * time + (wind - 0.5) * time**2
    features = torch.stack([speed, angle, height, wind], 1) * 2 - 1
    return TensorDataset(features, (distance / 20 - 1.5)[:, None] + 0.03 * torch.randn(count, 1))


class Throw(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.mse_loss(self.layers(x), y)
        self.log("train_loss", loss)
        return loss

    def on_validation_epoch_start(self):
        self.predicted, self.truth = [], []

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.predicted.append(self.layers(x))
        self.truth.append(y)

    def on_validation_epoch_end(self):
        predicted, truth = torch.cat(self.predicted), torch.cat(self.truth)
        r2 = 1 - (predicted - truth).pow(2).mean() / truth.var()
        print(f"step {self.global_step} val R2 {r2:.4f}")

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=4e-3)
        total = self.trainer.estimated_stepping_batches
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 8e-3, total_steps=total)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


if __name__ == "__main__":
    L.seed_everything(51, verbose=False)
    trainer = L.Trainer(
        max_epochs=1, val_check_interval=0.25, gradient_clip_val=1.0, accelerator="cpu", logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
    )  # fmt: skip
    trainer.fit(Throw(), DataLoader(throws(20000), batch_size=50, shuffle=True), DataLoader(throws(2000), batch_size=500))
