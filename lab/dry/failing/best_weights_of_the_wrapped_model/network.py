from torch import nn


class Network(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, 32), nn.GELU(), nn.LayerNorm(32))
        self.head = nn.Linear(32, classes)

    def forward(self, x):
        return self.head(self.layers(x))
