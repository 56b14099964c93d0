"""A module with training_step and configure_optimizers, and a small driver: stripes, checks and rings as images."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Shapes(Dataset):
    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(4, (count,), generator=generator)
        axis = torch.linspace(-1, 1, 12)
        y, x = torch.meshgrid(axis, axis, indexing="ij")
        base = torch.stack([torch.sin(6 * x), torch.sin(6 * y), torch.sin(6 * (x + y)), torch.sin(9 * (x**2 + y**2))])
        self.images = base[self.labels] + 0.7 * torch.randn(count, 12, 12, generator=generator)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index].unsqueeze(0)
        return image, self.labels[index]


class ShapeModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        )
        self.head = nn.Linear(64, 4)

    def forward(self, images):
        return self.head(self.features(images).flatten(1))

    def training_step(self, batch, number):
        images, labels = batch
        return nn.functional.cross_entropy(self(images), labels)

    def validation_step(self, batch, number):
        images, labels = batch
        return (self(images).argmax(-1) == labels).float().mean()

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=2e-3)
        return optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=5)


def fit(module, train, validation, epochs):
    optimizer, scheduler = module.configure_optimizers()
    for epoch in range(epochs):
        module.train()
        for number, batch in enumerate(train):
            loss = module.training_step(batch, number)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        scheduler.step()
        module.eval()
        with torch.inference_mode():
            scores = [module.validation_step(batch, number) for number, batch in enumerate(validation)]
        print(f"epoch {epoch}: loss {loss.item():.3f}, val_acc {torch.stack(scores).mean().item():.3f}")


torch.manual_seed(2)
fit(ShapeModule(), DataLoader(Shapes(960, 0), 24, shuffle=True), DataLoader(Shapes(240, 1), 48), epochs=5)
