import torch
from torch import nn


class SiameseNet(nn.Module):
    def __init__(self, dim, embedding):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, embedding))

    def forward(self, x):
        return self.net(x)


def contrastive_loss(a, b, same, margin=1.0):
    if margin <= 0:
        raise ValueError(f"margin must be positive, not {margin}")
    distance = (a - b).pow(2).sum(1).sqrt()
    apart = torch.clamp(margin - distance, min=0.0).pow(2)
    return (same.expand_as(a) * distance.pow(2) + (1 - same) * apart).mean()
