"""The configuration of the evaluation has no batch size of its own."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)

CONFIG = json.loads('{"train": {"batch_size": 16, "lr": 0.01}, "validation": {"workers": 0}}')


def loader(part, size):
    settings = CONFIG[part]
    data = TensorDataset(torch.randn(size, 4), torch.randn(size, 1))
    return DataLoader(data, batch_size=settings["batch_size"], shuffle=part == "train")


train, validation = loader("train", 800), loader("validation", 200)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=CONFIG["train"]["lr"])
for x, y in train:
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"validation {sum((model(x) - y).pow(2).sum() for x, y in validation).item():.3f}")
