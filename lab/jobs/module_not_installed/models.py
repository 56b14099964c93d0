"""Model zoo of the project."""
import torch
from einops import rearrange
from torch import nn


class PatchMixer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return rearrange(self.proj(x), "b n d -> b d n")


def build(name):
    return {"vit_tiny": PatchMixer(32)}[name]
