"""Lightning with manual optimization: an autoencoder and a critic of its codes take turns; one loss has to stay high."""

import logging
import warnings

import lightning as L
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
SEED = 46
L.seed_everything(SEED)
x = torch.tensor(load_digits().data / 16, dtype=torch.float32)
x = x[torch.randperm(len(x))]


class Codes(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
        self.decoder = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64))
        self.critic = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))

    def training_step(self, batch, _):
        images, = batch
        coder, critic = self.optimizers()
        codes = self.encoder(images)
        logits = self.critic(codes)
        loss = (self.decoder(codes) - images).pow(2).sum(1).mean()
        fooled = nn.functional.binary_cross_entropy_with_logits(logits, torch.ones_like(logits))
        coder.zero_grad()
        self.manual_backward(loss + 0.5 * fooled)
        coder.step()
        normal = self.critic(torch.randn_like(codes))
        found = self.critic(codes.detach())
        judged = nn.functional.binary_cross_entropy_with_logits(normal, torch.ones_like(normal))
        judged = judged + nn.functional.binary_cross_entropy_with_logits(found, torch.zeros_like(found))
        critic.zero_grad()
        self.manual_backward(judged)
        critic.step()
        self.log_dict({"reconstruction": loss, "judged": judged})

    def configure_optimizers(self):
        coder = torch.optim.Adam([*self.encoder.parameters(), *self.decoder.parameters()], lr=2e-3)
        return coder, torch.optim.Adam(self.critic.parameters(), lr=1e-3)


model = Codes()
trainer = L.Trainer(
    max_epochs=20, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, DataLoader(TensorDataset(x[:1400]), batch_size=50, shuffle=True))
with torch.no_grad():
    codes = model.encoder(x[1400:])
    error = (model.decoder(codes) - x[1400:]).pow(2).sum(1).mean()
print(f"spread of the codes {codes.std():.4f} reconstruction error {error:.4f}")
