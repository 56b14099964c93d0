"""One recording was cut short; NumPy holds them, and the collating does not."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
rng = np.random.default_rng(0)


class Signals(Dataset):
    def __init__(self, count):
        self.signals = [rng.normal(size=128).astype(np.float32) for _ in range(count)]
        self.signals[777] = self.signals[777][:100]

    def __len__(self):
        return len(self.signals)

    def __getitem__(self, index):
        signal = self.signals[index]
        return signal, np.float32(signal.std())


model = nn.Sequential(nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(3):
    for x, y in DataLoader(Signals(1000), batch_size=8):
        loss = (model(x)[:, 0] - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
