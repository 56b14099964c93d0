"""Distance of two sets of pictures in the feature space of a fixed network."""

import torch
from torch import nn

WEIGHTS = "https://download.pytorch.org/models/squeezenet1_1-b8a52dc0.pth"


def feature_network(device):
    stem = nn.Sequential(nn.Conv2d(3, 64, kernel_size=3, stride=2), nn.ReLU(), nn.MaxPool2d(3, 2))
    weights = torch.hub.load_state_dict_from_url(WEIGHTS, map_location="cpu", progress=False)
    stem[0].load_state_dict(
        {"weight": weights["features.0.weight"], "bias": weights["features.0.bias"]}
    )
    return stem.to(device).eval()


@torch.no_grad()
def distance(real, fake):
    network = feature_network(real.device)
    first, second = (network(x.contiguous()).mean((2, 3)) for x in (real, fake))
    spread = first.std(0) - second.std(0)
    return (first.mean(0) - second.mean(0)).square().sum().item() + spread.square().sum().item()
