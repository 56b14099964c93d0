import torch
from torch.utils.data import DataLoader, TensorDataset, random_split


def make_loaders(batch_size, rows=20000):
    generator = torch.Generator().manual_seed(7)
    features = torch.randn(rows, 16, generator=generator)
    weights = torch.randn(16, 1, generator=generator)
    target = features @ weights + 0.1 * torch.randn(rows, 1, generator=generator)
    full = TensorDataset(features, target)
    parts = random_split(full, [0.8, 0.1, 0.1], generator=generator)
    return tuple(
        DataLoader(part, batch_size=batch_size, shuffle=number == 0)
        for number, part in enumerate(parts)
    )
