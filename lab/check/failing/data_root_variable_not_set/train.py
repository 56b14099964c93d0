"""Image-folder training on pre-packed tensors."""

import argparse
import glob
import os

import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

from settings import data_root


def shards(split):
    pattern = os.path.join(data_root(), split, "shard-*.pt")
    names = sorted(glob.glob(pattern))
    if not names:
        raise FileNotFoundError(f"no shards match {pattern}")
    return ConcatDataset([TensorDataset(*torch.load(name)) for name in names])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=256)
    args = parser.parse_args()
    loader = DataLoader(shards("train"), batch_size=args.batch_size, shuffle=True, num_workers=4)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 64, 256), nn.ReLU(), nn.Linear(256, 200))
    model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(args.epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
