"""A tiny vision transformer, exported for the demo application."""
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CONFIG = SimpleNamespace(size=32, display=48, patch=8, width=48, depth=2, classes=5, epochs=4)


class Transformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        patches = (config.size // config.patch) ** 2
        self.cut = nn.Conv2d(3, config.width, config.patch, stride=config.patch)
        self.places = nn.Parameter(0.02 * torch.randn(1, patches, config.width))
        layer = nn.TransformerEncoderLayer(config.width, 4, 96, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, config.depth, enable_nested_tensor=False)
        self.head = nn.Linear(config.width, config.classes)

    def forward(self, pictures):
        tokens = self.cut(pictures).flatten(2).transpose(1, 2)
        tokens = tokens + self.places
        return self.head(self.layers(tokens).mean(dim=1))


def train(model, config):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(config.epochs):
        for _ in range(8):
            pictures = torch.rand(16, 3, config.size, config.size)
            labels = torch.randint(0, config.classes, (16,))
            loss = F.cross_entropy(model(pictures), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.3f}")


def export(model, config, path):
    example = torch.rand(1, 3, config.display, config.display)
    torch.jit.trace(model.eval(), example).save(path)


if __name__ == "__main__":
    model = Transformer(CONFIG)
    train(model, CONFIG)
    export(model, CONFIG, "vit.pt")
