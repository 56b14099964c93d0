import argparse
import os

import lightning.pytorch as pl
import numpy as np
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

METRICS = {"mae": lambda e: e.abs().mean(), "rmse": lambda e: e.square().mean().sqrt()}
STAGES = ("val", "test")


class Model(pl.LightningModule):
    def __init__(self, sensors: int, width: int = 64, lr: float = 1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(sensors, width), nn.ReLU(), nn.Linear(width, sensors))
        for stage in STAGES:
            setattr(self, f"{stage}_step_outputs", [])

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, _):
        x, y = batch
        return {"loss": nn.functional.mse_loss(self(x), y), "size": len(x)}

    def _shared(self, batch, stage):
        x, y = batch
        error = self(x) - y
        for name, function in METRICS.items():
            self.log(f"{stage}/{name}", function(error), batch_size=len(x))
        getattr(self, f"{stage}_step_outputs").append(error.abs().mean(0))

    def validation_step(self, batch, _):
        self._shared(batch, "val")

    def test_step(self, batch, _):
        self._shared(batch, "test")

    def on_validation_epoch_end(self):
        worst = torch.stack(self.val_step_outputs).mean(0).max()
        self.log("score", -worst)
        self.val_step_outputs.clear()

    def on_test_epoch_end(self):
        if self.test_step_outputs:
            print("worst sensor", torch.stack(self.test_step_outputs).mean(0).argmax().item())
        self.test_step_outputs.clear()

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": plateau, "monitor": "val/mae"}}


class Tell(Callback):
    def on_train_epoch_end(self, trainer, module):
        value = trainer.callback_metrics.get("val/rmse")
        if value is not None:
            print(f"epoch {trainer.current_epoch}: {value:.3f}")


def loaders(path, batch=128):
    speed = torch.from_numpy(np.load(path).astype(np.float32))
    pairs = TensorDataset(speed[:-1], speed[1:])
    cut = int(0.8 * len(pairs))
    train, rest = torch.utils.data.random_split(pairs, [cut, len(pairs) - cut])
    return speed.shape[1], DataLoader(train, batch, shuffle=True), DataLoader(rest, batch)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", required=True)
    p.add_argument("--monitor", default="val/mae")
    p.add_argument("--out", default=os.environ.get("LIGHTNING_OUT", "/scratch/lightning-names"))
    args = p.parse_args()
    mode = "max" if args.monitor == "score" else "min"
    sensors, train, rest = loaders(args.data)
    keep = ModelCheckpoint(dirpath=args.out, monitor=args.monitor, mode=mode, filename="{epoch}")
    trainer = pl.Trainer(max_epochs=25, logger=False, enable_progress_bar=False,
                         callbacks=[keep, EarlyStopping(args.monitor, mode=mode, patience=6), Tell()])
    trainer.fit(Model(sensors), train, rest)
    best = keep.best_model_path or keep.last_model_path
    trainer.test(Model.load_from_checkpoint(best), rest)


if __name__ == "__main__":
    main()
