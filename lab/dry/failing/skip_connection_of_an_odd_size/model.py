import torch
from torch import nn


def block(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, channels=(3, 8, 16, 32)):
        super().__init__()
        self.down = nn.ModuleList([block(a, b) for a, b in zip(channels, channels[1:])])
        self.up = nn.ModuleList([block(b + a, a) for a, b in zip(channels[1:], channels[2:])][::-1])
        self.pool = nn.MaxPool2d(2)
        self.widen = nn.Upsample(scale_factor=2)
        self.head = nn.Conv2d(channels[1], 1, 1)

    def forward(self, x):
        kept = []
        for layer in self.down[:-1]:
            x = layer(x)
            kept.append(x)
            x = self.pool(x)
        x = self.down[-1](x)
        for layer in self.up:
            x = torch.cat([self.widen(x), kept.pop()], dim=1)
            x = layer(x)
        return self.head(x)
