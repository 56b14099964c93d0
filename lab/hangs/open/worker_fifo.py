"""Ranks: 4. A worker of rank 2's loader opens a stream that nobody writes."""

import os
import tempfile

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Stream(Dataset):
    def __len__(self):
        return 4000

    def __getitem__(self, index):
        if rank == 2 and index == 600:
            stream = os.path.join(tempfile.mkdtemp(), "stream")
            os.mkfifo(stream)
            with open(stream, "rb") as file:  # <- waits
                file.read()
        return torch.randn(16), index % 4


dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 4))
for step, (images, labels) in enumerate(DataLoader(Stream(), batch_size=8, num_workers=1)):
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    if rank == 0:
        print(f"step {step}", flush=True)
