"""What all our Lightning models share."""

import lightning.pytorch as pl
import torch
import torch.nn.functional as F


class Regression(pl.LightningModule):
    def __init__(self, lr: float = 1e-3):
        super().__init__()
        self.save_hyperparameters()

    def _loss(self, batch, stage):
        x, y = batch
        prediction = self(x).squeeze(-1)
        loss = F.smooth_l1_loss(prediction, y)
        self.log(f"{stage}_loss", loss, prog_bar=stage == "val")
        return loss, prediction

    def training_step(self, batch, batch_idx):
        loss, _ = self._loss(batch, "train")
        return loss

    def validation_step(self, batch, batch_idx):
        loss, _ = self._loss(batch, "val")
        return loss

    def test_step(self, batch, batch_idx):
        loss, prediction = self._loss(batch, "test")
        return {"loss": loss, "prediction": prediction, "truth": batch[1]}

    def test_epoch_end(self, outputs):
        prediction = torch.cat([output["prediction"] for output in outputs])
        truth = torch.cat([output["truth"] for output in outputs])
        residual = (truth - prediction).square().sum()
        self.log("test_r2", 1 - residual / (truth - truth.mean()).square().sum())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "monitor": "val_loss"}}
