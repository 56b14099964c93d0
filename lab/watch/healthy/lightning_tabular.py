"""A Lightning module on a table of two classes: training and validation step, logged metrics, a rate that falls on a plateau.

Should reach: val accuracy of at least 0.90.
"""

import logging
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from sklearn.datasets import make_classification
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
torch.set_num_threads(1)


class TableData(L.LightningDataModule):
    def setup(self, stage=None):
        x, y = make_classification(
            2000, n_features=16, n_informative=8, n_clusters_per_class=2, class_sep=1.6, flip_y=0.02, random_state=5
        )
        x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
        mean, std = x[:1600].mean(0), x[:1600].std(0)
        x = (x - mean) / std
        self.train_set, self.val_set = TensorDataset(x[:1600], y[:1600]), TensorDataset(x[1600:], y[1600:])

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=64, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=200)


class TableModel(L.LightningModule):
    def __init__(self, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", F.cross_entropy(logits, y))
        self.log("val_accuracy", (logits.argmax(1) == y).float().mean())

    def on_validation_epoch_end(self):
        metrics = self.trainer.callback_metrics
        if not self.trainer.sanity_checking:
            print(f"epoch {self.current_epoch} val loss {metrics['val_loss']:.4f} val accuracy {metrics['val_accuracy']:.4f}")

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=1e-2)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=3)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "monitor": "val_loss"}}


if __name__ == "__main__":
    L.seed_everything(0, verbose=False)
    trainer = L.Trainer(
        max_epochs=12, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False
    )
    trainer.fit(TableModel(), datamodule=TableData())
