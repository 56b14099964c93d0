"""Point-cloud classifier."""

import argparse
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass(frozen=True)
class LoaderConfig:
    batch_size: int
    workers: int
    prefetch: int = 4


class Shapes(Dataset):
    """Points on spheres and cubes."""

    def __init__(self, count, points=128):
        self.count, self.points = count, points

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        label = index % 2
        cloud = torch.randn(self.points, 3)
        if label:
            cloud = cloud / cloud.abs().amax(1, keepdim=True)
        else:
            cloud = cloud / cloud.norm(dim=1, keepdim=True)
        return cloud, label


class PointNet(nn.Module):
    """Shared layers and a maximum over the points (Qi et al. 2017)."""

    def __init__(self, width=64):
        super().__init__()
        self.local = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, 4 * width))
        self.head = nn.Sequential(nn.Linear(4 * width, width), nn.ReLU(), nn.Linear(width, 2))

    def forward(self, clouds):
        return self.head(self.local(clouds).max(dim=1).values)


def loader_for(dataset, config, shuffle):
    return DataLoader(
        dataset,
        batch_size=config.batch_size,
        shuffle=shuffle,
        num_workers=config.workers,
        prefetch_factor=config.prefetch,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    config = LoaderConfig(args.batch_size, args.workers)
    loader = loader_for(Shapes(20000), config, shuffle=True)
    model = PointNet().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        for clouds, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(clouds.cuda()), labels.cuda())
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
