import argparse

import lightning as L
import torch
import torchmetrics
from lightning.pytorch.callbacks import Callback, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Counter(Callback):
    def __init__(self):
        self.seen = 0

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.seen += len(batch[0])

    def state_dict(self):
        return {"seen": self.seen}

    def load_state_dict(self, state_dict):
        self.seen = state_dict["seen"]


class Classifier(L.LightningModule):
    def __init__(self, width: int = 32, classes: int = 3, lr: float = 1e-2, **unused):
        super().__init__()
        self.save_hyperparameters(ignore=["unused"])
        self.net = nn.Sequential(nn.LazyLinear(self.hparams.width), nn.ReLU(), nn.Linear(width, classes))
        self.accuracy = nn.ModuleDict(
            {
                f"{stage}_acc": torchmetrics.Accuracy(task="multiclass", num_classes=classes)
                for stage in ("fit", "check")
            }
        )
        self.outputs = []
        self.example_input_array = torch.zeros(2, 6)

    def forward(self, x):
        return self.net(x)

    def _step(self, batch, stage):
        x, y = batch
        logits = self(x)
        self.accuracy[f"{stage}_acc"](logits, y)
        self.log(f"{stage}/acc", self.accuracy[f"{stage}_acc"], on_epoch=True, on_step=False)
        return nn.functional.cross_entropy(logits, y)

    def training_step(self, batch, batch_idx):
        return self._step(batch, "fit")

    def validation_step(self, batch, batch_idx):
        self.log("check/loss", self._step(batch, "check"))

    def test_step(self, batch, batch_idx, dataloader_idx=0):
        self.outputs.append(self(batch[0]).argmax(1))

    def on_test_epoch_end(self):
        guesses = torch.cat(self.outputs)
        self.outputs.clear()
        self.log("share_of_first", (guesses == 0).float().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        total = self.trainer.estimated_stepping_batches
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, self.hparams.lr, total_steps=int(total))
        return [optimizer], [{"scheduler": schedule, "interval": "step"}]


def loader(count, shuffle=False):
    x = torch.randn(count, 6)
    return DataLoader(TensorDataset(x, x[:, :3].argmax(1)), batch_size=32, shuffle=shuffle)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-epochs", type=int, default=20)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--width", type=int, default=32)
    args = parser.parse_args()
    model = Classifier(**vars(args))
    best = ModelCheckpoint(monitor="check/loss", filename="{epoch}-{step}", save_last=True)
    trainer = L.Trainer(
        max_epochs=args.max_epochs, limit_train_batches=args.limit or 1.0, devices=1, accelerator="auto",
        callbacks=[best, Counter(), LearningRateMonitor()], logger=CSVLogger("logs"),
        log_every_n_steps=1, enable_progress_bar=False,
    )
    trainer.fit(model, loader(512, True), loader(128))
    trainer.test(model, loader(128), ckpt_path="best")
    again = Classifier.load_from_checkpoint(trainer.checkpoint_callback.best_model_path)
    print(again.hparams["width"], again.hparams.lr, best.best_model_score)


if __name__ == "__main__":
    main()
