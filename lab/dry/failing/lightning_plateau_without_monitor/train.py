"""Learns the eccentricity of orbits with Lightning."""
import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Orbit(L.LightningModule):
    def __init__(self, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.layers = nn.Sequential(nn.Linear(6, 48), nn.SiLU(), nn.Linear(48, 1))

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.mse_loss(self.layers(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_loss", nn.functional.mse_loss(self.layers(x), y), prog_bar=True)

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=3)
        return {"optimizer": optimizer, "lr_scheduler": scheduler}


def data(number):
    x = torch.randn(number, 6)
    return TensorDataset(x, x.norm(dim=1, keepdim=True))


if __name__ == "__main__":
    L.seed_everything(1)
    trainer = L.Trainer(max_epochs=5, accelerator="cpu", logger=False)
    train, validation = DataLoader(data(512), 64), DataLoader(data(128), 64)
    trainer.fit(Orbit(), train, validation)
