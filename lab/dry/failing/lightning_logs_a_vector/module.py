import lightning as L
import torch
from torch import nn


class Weeds(L.LightningModule):
    """Several weeds may grow on one field: one output for each."""

    def __init__(self, weeds=6):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 64), nn.ReLU(), nn.Linear(64, weeds))
        self.criterion = nn.BCEWithLogitsLoss()

    def training_step(self, batch, batch_idx):
        fields, weeds = batch
        loss = self.criterion(self.net(fields), weeds)
        self.log("train/loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        fields, weeds = batch
        scores = self.net(fields)
        found = ((scores > 0) & (weeds > 0.5)).sum(dim=0) / weeds.sum(dim=0).clamp(min=1)
        self.log("val/loss", self.criterion(scores, weeds))
        self.log("val/recall", found)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)
