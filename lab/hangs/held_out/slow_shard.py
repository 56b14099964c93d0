"""Ranks: 4. Slow: 2, data. The shard of rank 2 lies on a slow disk."""

import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Shard(Dataset):
    def __len__(self):
        return 600_000

    def __getitem__(self, index):
        time.sleep(0.006 if rank == 2 else 0.001)
        return torch.randn(32)


dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters())
for step, batch in enumerate(DataLoader(Shard(), batch_size=10)):
    loss = model(batch).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.02)
    if rank == 0 and step % 50 == 0:
        print(f"step {step}: {loss.item():.3f}", flush=True)
dist.destroy_process_group()
