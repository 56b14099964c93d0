from torch import nn

from model.base import Regression


class Tabular(Regression):
    def __init__(self, features: int, hidden: int = 64, lr: float = 1e-3):
        super().__init__(lr)
        self.net = nn.Sequential(
            nn.Linear(features, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, 1)
        )

    def forward(self, x):
        return self.net(x)
