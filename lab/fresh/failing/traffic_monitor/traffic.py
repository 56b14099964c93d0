"""A GRU over all sensors of a road network."""
import lightning as L
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

HISTORY = 12


class Windows(Dataset):
    def __init__(self, speed, horizon):
        self.speed, self.horizon = speed, horizon

    def __len__(self):
        return len(self.speed) - HISTORY - self.horizon + 1

    def __getitem__(self, i):
        return self.speed[i:i + HISTORY], self.speed[i + HISTORY:i + HISTORY + self.horizon]


class Sensors(L.LightningDataModule):
    def __init__(self, path, horizon, batch=64):
        super().__init__()
        speed = torch.from_numpy(np.load(path).astype(np.float32))
        a, b = int(0.7 * len(speed)), int(0.8 * len(speed))
        self.parts = [Windows(part, horizon) for part in (speed[:a], speed[a:b], speed[b:])]
        self.sensors, self.batch = speed.shape[1], batch

    def train_dataloader(self):
        return DataLoader(self.parts[0], self.batch, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.parts[1], self.batch)

    def test_dataloader(self):
        return DataLoader(self.parts[2], self.batch)


class TrafficModel(L.LightningModule):
    def __init__(self, sensors, horizon, hidden=128):
        super().__init__()
        self.save_hyperparameters()
        self.gru = nn.GRU(sensors, hidden, batch_first=True)
        self.head = nn.Linear(hidden, sensors * horizon)

    def forward(self, x):
        _, h = self.gru(x)
        return self.head(h[-1]).view(len(x), self.hparams.horizon, self.hparams.sensors)

    def training_step(self, batch, index):
        x, y = batch
        loss = nn.functional.l1_loss(self(x), y)
        self.log("train_mae", loss)
        return loss

    def evaluate(self, batch, prefix):
        x, y = batch
        error = (self(x) - y).abs()
        self.log_dict({prefix + "_mae": error.mean(), prefix + "_rmse": error.square().mean().sqrt()},
                      on_step=False, on_epoch=True)

    def validation_step(self, batch, index):
        self.evaluate(batch, "val")

    def test_step(self, batch, index):
        self.evaluate(batch, "test")

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-3)
        return [optimizer], [torch.optim.lr_scheduler.MultiStepLR(optimizer, [30, 50])]
