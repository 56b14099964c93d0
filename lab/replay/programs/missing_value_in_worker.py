"""A table in which one line has a dash for a number; workers read it."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


class Table(Dataset):
    def __init__(self, size):
        self.lines = [f"{n % 13},{n % 7},{n % 5},{n % 3}" for n in range(size)]
        self.lines[1437] = "4,-,2,1"

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        values = [float(word) for word in self.lines[index].split(",")]
        return torch.tensor(values[:3]), torch.tensor(values[3:])


if __name__ == "__main__":
    model = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(2):
        for x, y in DataLoader(Table(2000), batch_size=25, num_workers=2):
            loss = (model(x) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.3f}")
