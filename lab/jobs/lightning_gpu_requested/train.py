import argparse
import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset


class Autoencoder(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.enc = torch.nn.Linear(28, 4)
        self.dec = torch.nn.Linear(4, 28)

    def training_step(self, batch, _):
        return torch.nn.functional.mse_loss(self.dec(self.enc(batch[0])), batch[0])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


p = argparse.ArgumentParser()
p.add_argument("--devices", type=int, default=4)
p.add_argument("--accelerator", default="gpu")
args = p.parse_args()
print("config:", vars(args))
trainer = L.Trainer(max_epochs=1, accelerator=args.accelerator, devices=args.devices, strategy="ddp",
                    logger=False, enable_checkpointing=False)
trainer.fit(Autoencoder(), DataLoader(TensorDataset(torch.randn(64, 28)), batch_size=16))
