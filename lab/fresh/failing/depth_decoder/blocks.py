import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvBlock(nn.Module):
    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


class UpBlock(nn.Module):
    """Doubles the size and joins the features of the encoder at that size."""

    def __init__(self, inputs, skip, outputs):
        super().__init__()
        self.reduce = nn.Conv2d(inputs, outputs, 1)
        self.norm = nn.BatchNorm2d(inputs)
        self.join = ConvBlock(outputs + skip, outputs)

    def forward(self, x, skip):
        x = F.interpolate(x, scale_factor=2, mode="nearest")
        x = F.relu(self.norm(self.reduce(x)))
        return self.join(torch.cat([x, skip], dim=1))
