"""A small validation part, and incomplete batches are dropped."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.set_num_threads(1)

data = TensorDataset(torch.randn(600, 5), torch.randn(600, 1))
train, held = random_split(data, [580, 20])
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def evaluate(loader):
    total = sum((model(x) - y).pow(2).mean().item() for x, y in loader)
    return total / len(loader)


for x, y in DataLoader(train, batch_size=32, shuffle=True):
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"validation {evaluate(DataLoader(held, batch_size=32, drop_last=True)):.4f}")
