import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Signals(Dataset):
    def __init__(self, n, transform):
        self.data = torch.randn(n, 64)
        self.transform = transform

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.transform(self.data[i]), i % 2


def make_loader(batch_size, scale):
    dataset = Signals(128, transform=lambda s: s / scale)
    return DataLoader(
        dataset, batch_size=batch_size, num_workers=2, multiprocessing_context="spawn"
    )


def main():
    loader = make_loader(batch_size=16, scale=10.0)
    model = nn.Linear(64, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    print("start of training")
    for epoch in range(2):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, loss.item())


if __name__ == "__main__":
    main()
