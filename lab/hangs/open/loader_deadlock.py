"""A worker of rank 1's loader is forked while another thread holds the lock of the cache."""

import threading

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

dist.init_process_group("gloo")
rank = dist.get_rank()
cache_lock = threading.Lock()


class Samples(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        with cache_lock:  # <- waits
            return torch.full((4,), float(index))


if rank == 1:
    cache_lock.acquire()
for step, batch in enumerate(
    DataLoader(Samples(), 8, num_workers=1, multiprocessing_context="fork")
):
    mean = batch.mean()
    dist.all_reduce(mean)
    print(f"step {step}: {mean.item()}", flush=True)
