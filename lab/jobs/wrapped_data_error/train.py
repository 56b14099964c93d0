import os

import torch
from torch import nn


class DataError(Exception):
    """Anything that is wrong with a data set."""


class Splits:
    def __init__(self, root):
        self.root = root

    def path(self, split):
        return os.path.join(self.root, f"{split}.pt")

    def load(self, split):
        try:
            return torch.load(self.path(split))
        except Exception as error:
            raise DataError(f"could not load split '{split}' of data set '{self.root}'") from error


os.makedirs("corpus")
torch.save(torch.randn(256, 12), "corpus/train.pt")
torch.save(torch.randn(64, 12), "corpus/validation.pt")

splits = Splits("corpus")
train = splits.load("train")
model = nn.Sequential(nn.Linear(12, 3), nn.Linear(3, 12))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(3):
    loss = nn.functional.mse_loss(model(train), train)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"epoch {epoch}: train loss {loss.item():.4f}")
    valid = splits.load("valid")
    print(f"epoch {epoch}: valid loss {nn.functional.mse_loss(model(valid), valid).item():.4f}")
