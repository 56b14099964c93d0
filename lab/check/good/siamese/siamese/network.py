import torch
from torch import nn


class Siamese(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.tower = nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, width))
        self.head = nn.Linear(2 * width, 1)
        self.apply(self._init)

    @staticmethod
    def _init(module):
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            module.bias.data.fill_(0.01)

    def forward(self, first, second):
        return self.head(torch.cat((self.tower(first), self.tower(second)), 1))
