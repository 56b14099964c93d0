import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Quality(Dataset):
    """Wine-like tabular data; labels come from the file as float32, like every other column."""

    def __init__(self, n=320):
        table = torch.randn(n, 12)
        table[:, -1] = torch.randint(0, 3, (n,)).float()
        self.table = table

    def __len__(self):
        return len(self.table)

    def __getitem__(self, i):
        row = self.table[i]
        return row[:-1], row[-1]


net = nn.Sequential(nn.Linear(11, 32), nn.ReLU(), nn.BatchNorm1d(32), nn.Linear(32, 3))
criterion = nn.CrossEntropyLoss()
optimiser = torch.optim.Adam(net.parameters())
loader = DataLoader(Quality(), batch_size=64, shuffle=True)
print(f"{len(loader)} batches per epoch")
for epoch in range(1, 4):
    running = 0.0
    for features, target in loader:
        optimiser.zero_grad()
        loss = criterion(net(features), target)
        loss.backward()
        optimiser.step()
        running += loss.item()
    print(f"epoch {epoch} avg loss {running / len(loader):.3f}")
