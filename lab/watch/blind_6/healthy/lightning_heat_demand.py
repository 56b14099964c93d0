"""Forecasts the heat demand of the next hours with Lightning; each window is scaled by its own level."""
import logging
import warnings

import lightning as L
import numpy as np
import torch
from torch import nn

SEED = 17
PAST, AHEAD = 36, 12
warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
L.seed_everything(SEED, verbose=False)
rng = np.random.default_rng(SEED)


def demand(hours):
    time = np.arange(hours)
    level = 40 + 25 * np.sin(time / 60) + np.cumsum(rng.normal(0, 0.15, hours))
    return level + 4 * np.sin(2 * np.pi * time / 24) + rng.normal(0, 0.5, hours)


class Windows(torch.utils.data.Dataset):
    def __init__(self, series):
        cut = np.lib.stride_tricks.sliding_window_view(series, PAST + AHEAD)[::2]
        self.cut = torch.tensor(cut.copy(), dtype=torch.float32)

    def __len__(self):
        return len(self.cut)

    def __getitem__(self, index):
        return self.cut[index, :PAST], self.cut[index, PAST:]


class Forecaster(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(PAST, 96), nn.GELU(), nn.Linear(96, 96), nn.GELU(), nn.Linear(96, AHEAD))
        self.errors = []

    def scale(self, values):
        return values.mean(1, keepdim=True), values.std(1, keepdim=True) + 1e-3

    def forward(self, past):
        mean, std = self.scale(past)
        return self.net((past - mean) / std) * std + mean

    def training_step(self, batch, _):
        past, future = batch
        mean, std = self.scale(past)
        found = self.net((past - mean) / std)
        return nn.functional.mse_loss(found, (future - mean) / std)

    def validation_step(self, batch, _):
        past, future = batch
        self.errors.append((self(past) - future).square().mean(1))

    def on_validation_epoch_end(self):
        rmse = torch.cat(self.errors).mean().sqrt()
        self.errors.clear()
        print(f"epoch {self.current_epoch + 1}: val rmse {rmse:.4f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


series = demand(3200)
train = torch.utils.data.DataLoader(Windows(series[:2500]), batch_size=64, shuffle=True)
val = torch.utils.data.DataLoader(Windows(series[2500:]), batch_size=256)
trainer = L.Trainer(
    max_epochs=10, logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False, accelerator="cpu", num_sanity_val_steps=0,
)
trainer.fit(Forecaster(), train, val)
