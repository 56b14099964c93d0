"""Ranks: 2. Slow: 0, data. The documents of rank 0 are ten times as long and split in Python."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()


class Documents(Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        text = "the quick brown fox " * (4000 if rank == 0 else 400)
        words = [word.strip().lower() for word in text.split()]
        return torch.full((64,), float(len(set(words))))


model = DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
for step, batch in enumerate(DataLoader(Documents(), batch_size=16)):
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
    if rank == 0 and step % 20 == 0:
        print(f"step {step}", flush=True)
