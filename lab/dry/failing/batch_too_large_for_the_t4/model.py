import torch.nn.functional as F
from torch import nn


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        self.second_norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        inner = F.relu(self.first_norm(self.first(x)))
        return F.relu(x + self.second_norm(self.second(inner)))


class Sharpen(nn.Module):
    """Keeps the full resolution from the first layer to the last."""

    def __init__(self, channels=64, depth=8):
        super().__init__()
        self.enter = nn.Conv2d(3, channels, 3, padding=1)
        self.blocks = nn.Sequential(*[Residual(channels) for _ in range(depth)])
        self.leave = nn.Conv2d(channels, 3, 3, padding=1)

    def forward(self, x):
        return x + self.leave(self.blocks(self.enter(x)))
