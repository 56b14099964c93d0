"""Gestures from three acceleration channels, recognised with Lightning; the best epoch is chosen by an EarlyStopping callback."""

import logging
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import EarlyStopping
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
CLASSES, LENGTH = 8, 40


def recordings(n):
    y = torch.randint(CLASSES, (n,))
    t = torch.linspace(0, 1, LENGTH)
    start = 0.3 * torch.rand(n, 1)
    freq = 2.0 + (y % 4)[:, None] * 0.9
    pulse = torch.exp(-(((t - start - 0.35) / 0.2) ** 2))
    wave = torch.sin(2 * torch.pi * freq * (t - start))
    lag = torch.where(y < 4, 0.0, 0.9)[:, None]
    second = torch.sin(2 * torch.pi * freq * (t - start) - lag)
    x = torch.stack([pulse * wave, pulse * second, 0.3 * torch.ones(n, LENGTH)], 1)
    return TensorDataset(x + 0.35 * torch.randn_like(x), y)


class Gestures(L.LightningModule):
    def __init__(self, width=24, depth=3, epochs=12, steps=0):
        super().__init__()
        self.save_hyperparameters()
        self.stem = nn.Conv1d(3, width, 5, padding=2)
        self.layers = nn.ModuleList([nn.Conv1d(width, width, 5, padding=2) for _ in range(depth)])
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        h = F.relu(self.stem(x))
        for layer in self.layers:
            h = F.relu(layer(F.avg_pool1d(h, 2)))
        return self.head(h.mean(-1))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", F.cross_entropy(logits, y))
        self.log("val_acc", (logits.argmax(1) == y).float().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=4e-3)
        total = self.hparams.epochs * self.hparams.steps
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=total)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class Report(L.Callback):
    def on_validation_epoch_end(self, trainer, module):
        if not trainer.sanity_checking:
            numbers = {k: round(float(v), 4) for k, v in trainer.callback_metrics.items()}
            print(f"epoch {trainer.current_epoch}", numbers)


L.seed_everything(4, verbose=False)
train_loader = DataLoader(recordings(1600), batch_size=32, shuffle=True)
val_loader = DataLoader(recordings(600), batch_size=300)
module = Gestures(epochs=12, steps=len(train_loader))
stopping = EarlyStopping(monitor="val_acc", mode="max", patience=6)
trainer = L.Trainer(
    max_epochs=12, accelerator="cpu", callbacks=[stopping, Report()], logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)
trainer.fit(module, train_loader, val_loader)
result = trainer.validate(module, val_loader, verbose=False)[0]
print(f"final accuracy: {result['val_acc']:.4f}")
