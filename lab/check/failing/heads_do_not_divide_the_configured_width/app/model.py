import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(x)


class PatchTransformer(nn.Module):
    def __init__(self, width, heads, depth, patches, classes):
        super().__init__()
        self.project = nn.Linear(48, width)
        self.position = nn.Parameter(torch.zeros(1, patches, width))
        self.layers = nn.Sequential(*[Layer(width, heads) for _ in range(depth)])
        self.head = nn.Linear(width, classes)

    def forward(self, patches):
        hidden = self.layers(self.project(patches) + self.position)
        return self.head(hidden.mean(1))
