"""Workers share a cache on disk, and one reads what another is still writing."""

import json
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


class Cached(Dataset):
    def __len__(self):
        return 600

    def __getitem__(self, index):
        path = f"cache{index % 20}.json"
        if not os.path.exists(path):
            with open(path, "w", buffering=1) as file:
                values = [(index * k % 11) / 11 for k in range(64)]
                file.write(json.dumps(values)[:100])
                file.flush()
                time.sleep(0.002)
                file.write(json.dumps(values)[100:])
        with open(path) as file:
            values = json.load(file)
        if index % 3 == 0:
            os.remove(path)
        return torch.tensor(values), torch.tensor([sum(values)])


if __name__ == "__main__":
    model = nn.Linear(64, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(10):
        for x, y in DataLoader(Cached(), batch_size=4, shuffle=True, num_workers=3):
            loss = (model(x) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
