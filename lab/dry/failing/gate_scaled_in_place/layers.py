import torch
from torch import nn


class SqueezeExcite(nn.Module):
    def __init__(self, channels, ratio=4):
        super().__init__()
        self.squeeze = nn.Linear(channels, channels // ratio)
        self.excite = nn.Linear(channels // ratio, channels)

    def forward(self, x):
        gate = torch.sigmoid(self.excite(torch.relu(self.squeeze(x.mean(dim=(2, 3))))))
        gate *= 2
        return x * gate[:, :, None, None]
