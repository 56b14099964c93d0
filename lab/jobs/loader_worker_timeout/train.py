"""Samples come from a slow network share; a stuck worker is to be noticed."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class NetworkShare(Dataset):
    def __init__(self, slow):
        self.slow = slow

    def __len__(self):
        return 400

    def __getitem__(self, i):
        time.sleep(30 if i == self.slow else 0.002)
        return torch.randn(10), torch.randn(1)


def main():
    loader = DataLoader(NetworkShare(slow=215), batch_size=20, num_workers=1, timeout=4)
    model = nn.Linear(10, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(2):
        for i, (x, y) in enumerate(loader):
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(f"epoch {epoch} [{i:2d}/{len(loader)}] {loss.item():.4f}")


if __name__ == "__main__":
    main()
