"""Rank 0 evaluates for long, its data loaded by workers; rank 1 waits at the barrier."""

import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 500

    def __getitem__(self, index):
        time.sleep(0.1)
        return torch.randn(3, 32, 32)


dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Flatten(), torch.nn.LazyLinear(10))
print("start", flush=True)
if rank == 0:
    with torch.no_grad():
        for batch in DataLoader(Images(), batch_size=50, num_workers=1):
            model(batch)
dist.barrier()
print("done", flush=True)
dist.destroy_process_group()
