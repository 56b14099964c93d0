"""Tells the state of a machine from its sensors."""
import csv
import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def read(path):
    with open(path, newline="") as file:
        rows = list(csv.reader(file))
    return np.array(rows[1:], dtype=np.float32)


def main(path):
    table = read(path)
    features, labels = table[:, :-1], table[:, -1]
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    data = TensorDataset(torch.from_numpy(features), torch.from_numpy(labels))
    model = nn.Sequential(nn.Linear(features.shape[1], 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(40):
        total = 0.0
        for x, y in DataLoader(data, batch_size=20, shuffle=True):
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
        print(f"{epoch:3d} {total / len(data):.4f}")


main(sys.argv[1])
