from torch import nn


def mlp(inputs, outputs, width, depth):
    sizes = [inputs] + [width] * depth
    layers = []
    for before, after in zip(sizes, sizes[1:]):
        layers += [nn.Linear(before, after), nn.SiLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], outputs))
