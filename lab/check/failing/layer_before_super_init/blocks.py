import torch
from torch import nn


class Gated(nn.Module):
    """A gated dilated convolution (van den Oord et al. 2016)."""

    def __init__(self, channels, dilation):
        self.filter = nn.Conv1d(channels, channels, 3, padding=dilation, dilation=dilation)
        self.gate = nn.Conv1d(channels, channels, 3, padding=dilation, dilation=dilation)
        super().__init__()

    def forward(self, x):
        return x + torch.tanh(self.filter(x)) * torch.sigmoid(self.gate(x))
