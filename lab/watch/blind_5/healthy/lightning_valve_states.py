"""Lightning: which of six states is a valve in? Pressure curves, a stack of convolutions, the best checkpoint is tested."""

import logging
import warnings

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
SEED = 5
L.seed_everything(SEED)


def curves(count):
    state = torch.randint(6, (count,))
    time = torch.linspace(0, 1, 40)
    start = torch.rand(count, 1) * 0.5
    slope = (state % 3).float()[:, None] * 2 + 2
    wave = torch.sin(6.28 * slope * (time + start))
    saw = 2 * torch.remainder(slope * (time + start), 1) - 1
    curve = torch.where((state >= 3)[:, None], saw, wave) + 0.45 * torch.randn(count, 40)
    return TensorDataset(curve[:, None], state)


class Valve(L.LightningModule):
    def __init__(self, depth=4, width=12):
        super().__init__()
        self.stem = nn.Conv1d(1, width, 5, padding=2)
        self.blocks = nn.ModuleList([nn.Conv1d(width, width, 5, padding=2) for _ in range(depth)])
        self.head = nn.Linear(width, 6)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        for block in self.blocks:
            x = torch.relu(block(x))
        return self.head(x.mean(-1))

    def training_step(self, batch, _):
        loss = nn.functional.cross_entropy(self(batch[0]), batch[1])
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _):
        self.log("val_acc", (self(batch[0]).argmax(1) == batch[1]).float().mean())

    def test_step(self, batch, _):
        self.log("test_acc", (self(batch[0]).argmax(1) == batch[1]).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=4e-3)


train, validation, test = curves(1600), curves(400), curves(800)
best = ModelCheckpoint(dirpath="checkpoints", monitor="val_acc", mode="max", save_top_k=1)
trainer = L.Trainer(
    max_epochs=9, accelerator="cpu", callbacks=[best], logger=False, enable_progress_bar=False, enable_model_summary=False
)
trainer.fit(Valve(), DataLoader(train, batch_size=32, shuffle=True), DataLoader(validation, batch_size=400))
print(f"best checkpoint val accuracy {float(best.best_model_score):.4f}")
scores = trainer.test(dataloaders=DataLoader(test, batch_size=400), ckpt_path="best", verbose=False)
print(f"test accuracy {scores[0]['test_acc']:.4f}")
