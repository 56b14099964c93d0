import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(L.LightningModule):
    def __init__(self, lr=1e-2):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 3))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", nn.functional.cross_entropy(self.net(x), y))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


def main():
    L.seed_everything(1)
    data = TensorDataset(torch.randn(96, 16), torch.randint(3, (96,)))
    checkpoint = ModelCheckpoint("checkpoints", monitor="val_acc", mode="max")
    trainer = L.Trainer(max_epochs=2, accelerator="cpu", logger=False, callbacks=[checkpoint],
                        enable_progress_bar=False)
    trainer.fit(Classifier(), DataLoader(data, 32), DataLoader(data, 32))


if __name__ == "__main__":
    main()
