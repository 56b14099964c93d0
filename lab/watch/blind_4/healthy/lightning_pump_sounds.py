"""Lightning module that classifies pump vibrations; the learning rate climbs from zero over the first steps."""

import math

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

L.seed_everything(9)


def pumps(count):
    kind = torch.randint(0, 4, (count,))
    t = torch.linspace(0, 1, 128)
    speed = 6 + 3 * torch.rand(count, 1)
    phase = 2 * math.pi * torch.rand(count, 1)
    wave = torch.sin(2 * math.pi * speed * t + phase)
    wave = wave + 0.5 * (kind[:, None] == 1) * torch.sin(4 * math.pi * speed * t)
    wave = wave + 0.8 * (kind[:, None] == 2) * (torch.sin(math.pi * speed * t) > 0.98)
    wave = wave * (1 + 0.5 * (kind[:, None] == 3) * torch.sin(2 * math.pi * 2 * t))
    return TensorDataset((wave + 0.25 * torch.randn(count, 128))[:, None], kind)


class Pump(L.LightningModule):
    def __init__(self, lr=0.03, warmup=120):
        super().__init__()
        self.lr, self.warmup = lr, warmup
        self.net = nn.Sequential(
            nn.Conv1d(1, 16, 9, stride=2, padding=4), nn.BatchNorm1d(16), nn.ReLU(),
            nn.Conv1d(16, 32, 9, stride=2, padding=4), nn.BatchNorm1d(32), nn.ReLU(),
            nn.AdaptiveMaxPool1d(4), nn.Flatten(), nn.Linear(128, 4),
        )

    def training_step(self, batch, _):
        x, y = batch
        return F.cross_entropy(self.net(x), y)

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_acc", (self.net(x).argmax(1) == y).float().mean())

    def on_validation_epoch_end(self):
        print(f"epoch {self.current_epoch} val_acc {self.trainer.callback_metrics['val_acc'].item():.4f}")

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9)
        ramp = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / self.warmup))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": ramp, "interval": "step"}}


trainer = L.Trainer(
    max_epochs=4, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False, num_sanity_val_steps=0,
)
trainer.fit(Pump(), DataLoader(pumps(1600), batch_size=32, shuffle=True), DataLoader(pumps(600), batch_size=200))
