import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Segmenter(L.LightningModule):
    def __init__(self, classes=4):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, classes, 1))
        self.loss = nn.CrossEntropyLoss()

    def training_step(self, batch, index):
        images, masks = batch
        loss = self.loss(self.net(images), masks)
        self.log("train/loss", loss)
        return loss

    def validation_step(self, batch, index):
        images, masks = batch
        logits = self.net(images)
        self.log("val/loss", self.loss(logits, masks))
        self.log("val/iou", self.iou(logits.argmax(1), masks))

    def iou(self, predicted, masks):
        both = ((predicted == 1) & (masks == 1)).sum()
        return both / ((predicted == 1) | (masks == 1)).sum().clamp(min=1)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), 1e-3)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": plateau, "monitor": "val_loss"}}


def loader(count, seed, shuffle=False):
    rng = torch.Generator().manual_seed(seed)
    images = torch.randn(count, 1, 24, 24, generator=rng)
    return DataLoader(TensorDataset(images, torch.randint(0, 4, (count, 24, 24), generator=rng)), 8, shuffle=shuffle)


def main():
    L.seed_everything(0)
    checkpoint = ModelCheckpoint("checkpoints", monitor="val/iou", mode="max")
    trainer = L.Trainer(
        max_epochs=4, accelerator="cpu", callbacks=[checkpoint, EarlyStopping("val/loss", patience=3)], logger=False
    )
    trainer.fit(Segmenter(), loader(64, 0, True), loader(16, 1))
    print(checkpoint.best_model_path)


if __name__ == "__main__":
    main()
