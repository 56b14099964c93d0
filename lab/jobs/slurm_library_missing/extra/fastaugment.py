import torch


def jitter(x, seed, scale=0.1):
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(seed))
    return x + scale * noise
