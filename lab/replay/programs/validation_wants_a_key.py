"""Lightning: the training reads pairs, the validation a dictionary with another name."""

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader

torch.set_num_threads(1)


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def training_step(self, batch, number):
        return (self.layer(batch["x"]) - batch["y"]).pow(2).mean()

    def validation_step(self, batch, number):
        self.log("loss", (self.layer(batch["x"]) - batch["target"]).pow(2).mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


rows = [{"x": torch.randn(4), "y": torch.randn(1)} for _ in range(320)]
trainer = lightning.Trainer(
    max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, num_sanity_val_steps=0,
)
trainer.fit(Regression(), DataLoader(rows, batch_size=8), DataLoader(rows, batch_size=8))
