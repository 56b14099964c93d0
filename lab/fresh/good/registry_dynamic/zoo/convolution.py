from torch import nn

from zoo import register


@register("tiny_conv")
class TinyConvolution(nn.Module):
    def __init__(self, width=8, depth=2):
        super().__init__()
        self.depth = depth
        channels = 1
        for index in range(depth):
            setattr(self, f"layer{index}", nn.Conv2d(channels, width, 3, padding=1))
            channels = width
        self.register_buffer("steps", __import__("torch").zeros((), dtype=int))
        self.head = nn.Linear(channels, 2)

    def forward(self, x):
        for index in range(self.depth):
            x = getattr(self, f"layer{index}")(x).relu()
        self.steps += 1
        return self.head(x.mean((2, 3)))
