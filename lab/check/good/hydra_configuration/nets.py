from torch import nn


def build(width: int, depth: int, activation: str = "ReLU") -> nn.Module:
    act = getattr(nn, activation)
    layers = [nn.Linear(4, width), act()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), act()]
    return nn.Sequential(*layers, nn.Linear(width, 1))
