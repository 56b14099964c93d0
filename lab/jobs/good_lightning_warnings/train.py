import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping
from torch.utils.data import DataLoader, TensorDataset


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(10, 1)

    def training_step(self, batch, i):
        loss = self.lin(batch[0]).pow(2).mean()
        if i == 3:
            return None         # a bad batch: Lightning warns and goes on
        self.log("error", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, i):
        self.log("val_error", self.lin(batch[0]).abs().max())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.2)


data = DataLoader(TensorDataset(torch.randn(70, 10)), batch_size=8, drop_last=False)
trainer = L.Trainer(max_epochs=5, log_every_n_steps=50, accelerator="cpu", detect_anomaly=True, fast_dev_run=False,
                    callbacks=[EarlyStopping("val_error", patience=1, min_delta=0.5, strict=False, check_finite=True)], logger=False)
trainer.fit(Net(), data, data)
