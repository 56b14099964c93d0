import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES = ["plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


class Labelled(Dataset):
    """Labels as exported by the annotation tool, which counts from 1."""

    def __init__(self, n):
        g = torch.Generator().manual_seed(9)
        self.x = torch.randn(n, 48, generator=g)
        self.y = torch.randint(1, 11, (n,), generator=g)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def main():
    torch.manual_seed(0)
    loader = DataLoader(Labelled(600), batch_size=4, shuffle=True)
    model = nn.Sequential(nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, len(CLASSES)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    criterion = nn.CrossEntropyLoss()
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"iter {i} loss {loss.item():.3f}")


main()
