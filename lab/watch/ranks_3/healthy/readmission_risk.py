"""Months until patients come back, as a hazard for each month, with prototypes of patients. Lightning on two ranks."""

import itertools
import logging
import os
import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 330
MONTHS = 8
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


def patients(count, generator):
    """Measurements, the month of return or of the last contact, and whether the patient returned."""
    centers = 1.5 * torch.randn(12, 8, generator=torch.Generator().manual_seed(SEED))
    rates = torch.rand(12, generator=torch.Generator().manual_seed(SEED + 1)).pow(2) * 0.5 + 0.02
    kind = torch.randint(12, (count,), generator=generator)
    measured = centers[kind] + 0.6 * torch.randn(count, 8, generator=generator)
    event = (
        torch.log1p(-torch.rand(count, generator=generator)) / torch.log1p(-rates[kind])
    ).long()
    censored = torch.randint(3, 12, (count,), generator=generator).clamp(max=MONTHS - 1)
    return measured, torch.minimum(event, censored), event <= censored


class Risk(lightning.LightningModule):
    def __init__(self, prototypes=40):
        super().__init__()
        self.prototypes = nn.Parameter(torch.zeros(prototypes, 8))
        self.width = nn.Parameter(torch.zeros(prototypes))
        self.head = nn.Sequential(nn.Linear(prototypes, 32), nn.ReLU(), nn.Linear(32, MONTHS))

    def forward(self, measured):
        distance = torch.cdist(measured, self.prototypes).square()
        return self.head(torch.exp(-distance * self.width.exp() / 4))

    def on_train_start(self):
        batches = itertools.islice(self.trainer.train_dataloader, 4)
        measured = torch.cat([batch[0] for batch in batches])
        chosen = measured[torch.randperm(len(measured))[: len(self.prototypes)]]
        chosen = self.trainer.strategy.broadcast(chosen)
        self.prototypes.data.copy_(chosen)

    def hazard_loss(self, batch):
        measured, month, returned = batch
        scores = self(measured)
        months = torch.arange(MONTHS)
        at_risk = months <= month[:, None]
        happened = (months == month[:, None]) & returned[:, None]
        loss = nn.functional.binary_cross_entropy_with_logits(
            scores, happened.float(), reduction="none"
        )
        return (loss * at_risk).sum() / at_risk.sum()

    def training_step(self, batch, index):
        loss = self.hazard_loss(batch)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, index):
        self.log("val_loss", self.hazard_loss(batch), sync_dist=True)

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.5, momentum=0.9)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)]


lightning.seed_everything(SEED)
generator = torch.Generator().manual_seed(SEED)
train = DataLoader(TensorDataset(*patients(2400, generator)), batch_size=24, shuffle=True)
val = DataLoader(TensorDataset(*patients(1600, generator)), batch_size=200)
model = Risk()
trainer = lightning.Trainer(
    accelerator="cpu",
    devices=int(os.environ.get("LOCAL_WORLD_SIZE", os.environ.get("WORLD_SIZE", "1"))),
    strategy="ddp",
    max_steps=150,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    num_sanity_val_steps=0,
    use_distributed_sampler=True,
)
trainer.fit(model, train, val)
if trainer.is_global_zero:
    print(
        f"steps {trainer.global_step}  val loss {trainer.callback_metrics['val_loss'].item():.4f}"
    )
