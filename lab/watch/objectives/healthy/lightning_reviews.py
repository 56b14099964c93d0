"""Rates short reviews with Lightning."""

import warnings

warnings.filterwarnings("ignore")
import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

lightning.seed_everything(12, verbose=False)
torch.set_num_threads(1)
WORDS, LENGTH, STARS = 120, 18, 4
mood = torch.randn(WORDS)
reviews = torch.randint(WORDS, (1500, LENGTH))
feeling = mood[reviews].mean(1) + 0.05 * torch.randn(1500)
stars = torch.bucketize(feeling, torch.quantile(feeling, torch.tensor([0.25, 0.5, 0.75])))


class Reviews(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, 32)
        self.body = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(64, STARS)

    def forward(self, review: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(self.words(review).mean(1)))

    def training_step(self, batch, index):
        review, star = batch
        loss = nn.functional.cross_entropy(self(review), star)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, index):
        review, star = batch
        right = (self(review).argmax(1) == star).float().mean()
        self.log("right", right)

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=5e-3)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 6, 0.5)
        return [optimizer], [schedule]


train = DataLoader(TensorDataset(reviews[:1200], stars[:1200]), batch_size=40, shuffle=True)
test = DataLoader(TensorDataset(reviews[1200:], stars[1200:]), batch_size=100)
trainer = lightning.Trainer(
    max_epochs=10, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False,
)
model = Reviews()
trainer.fit(model, train, test)
print(f"accuracy {float(trainer.callback_metrics['right']):.4f}")
