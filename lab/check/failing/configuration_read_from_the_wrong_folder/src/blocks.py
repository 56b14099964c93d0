from torch import nn


class MixerBlock(nn.Module):
    def __init__(self, width, tokens=32):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.tokens = nn.Linear(tokens, tokens)
        self.norm2 = nn.LayerNorm(width)
        self.channels = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.blocks = nn.ModuleList([MixerBlock(width) for _ in range(depth)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
