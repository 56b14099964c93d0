from torch import nn

from registry import register


@register("mlp")
class Mlp(nn.Sequential):
    def __init__(self, classes):
        super().__init__(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, classes))
