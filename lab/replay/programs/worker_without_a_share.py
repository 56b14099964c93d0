"""Files are dealt out to workers, and there are more workers than files."""

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

torch.set_num_threads(1)

FILES = [[n * 0.01 + k for n in range(400)] for k in range(2)]


class Readings(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        mine = FILES[worker.id :: worker.num_workers]
        values = [value for file in mine for value in file]
        mean = sum(values) / len(values)
        for value in values:
            yield torch.tensor([value - mean]), torch.tensor([value])


if __name__ == "__main__":
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for x, y in DataLoader(Readings(), batch_size=8, num_workers=3):
        loss = (model(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())
