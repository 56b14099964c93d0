"""Two workers shuffle their own part of a stream; one record has no price."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

torch.set_num_threads(1)

RECORDS = [{"size": n % 20 + 1, "price": (n % 20 + 1) * 3.0} for n in range(2000)]
del RECORDS[901]["price"]


class Stream(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        mine = list(RECORDS[worker.id :: worker.num_workers])
        random.shuffle(mine)
        for record in mine:
            yield torch.tensor([record["size"] / 20]), torch.tensor([record["price"]])


if __name__ == "__main__":
    model = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for x, y in DataLoader(Stream(), batch_size=8, num_workers=2):
        loss = (model(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())
