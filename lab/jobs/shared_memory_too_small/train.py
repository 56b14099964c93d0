import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, i):
        return torch.rand(3, 64, 64), i % 10


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args()
    loader = DataLoader(Images(), args.batch_size, num_workers=args.workers)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, stride=4), nn.Flatten(), nn.Linear(2048, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for i, (images, labels) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"[{i + 1}/{len(loader)}] loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
