"""Regression on windows of a time series with Lightning."""
import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    def __init__(self, n=200, length=12):
        t = torch.linspace(0, 20, n)
        self.series = torch.sin(t) + 0.05 * torch.randn(n)
        self.length = length

    def __len__(self):
        return len(self.series) - self.length

    def __getitem__(self, i):
        return {"past": self.series[i : i + self.length], "next": self.series[i + self.length]}


class Forecaster(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 1))

    def training_step(self, batch, batch_idx):
        pred = self.net(batch["past"]).squeeze(-1)
        return nn.functional.mse_loss(pred, batch["target"])

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-3)


if __name__ == "__main__":
    trainer = L.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_model_summary=True, enable_progress_bar=False)
    trainer.fit(Forecaster(), DataLoader(Windows(), batch_size=16))
