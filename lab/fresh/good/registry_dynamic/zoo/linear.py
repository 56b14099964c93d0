from torch import nn

from zoo import register


@register()
def flat(side=8):
    return nn.Sequential(nn.Flatten(), nn.Linear(side * side, 2))
