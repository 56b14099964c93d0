"""Halve the batch size until the throughput does not improve any more, then train."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.randn(512, 16), torch.randn(512, 1))
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))


def throughput(batch_size):
    loader = DataLoader(dataset, batch_size=batch_size, shuffle=True)
    start = time.perf_counter()
    for x, y in loader:
        nn.functional.mse_loss(model(x), y).backward()
    return len(dataset) / (time.perf_counter() - start)


batch_size, target = 16, 1e9
while True:
    speed = throughput(batch_size)
    print(f"batch size {batch_size:3d}: {'fast' if speed > target else 'too slow'}, trying the half")
    if speed > target:
        break
    batch_size //= 2
