"""Ranks: 4. Slow: 3, data. Rank 3's images are larger and take longer to resize."""

import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 600_000

    def __getitem__(self, index):
        end = time.process_time() + (0.002 if rank == 3 else 0.0005)
        while time.process_time() < end:
            pass
        return torch.randn(32)


dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step, batch in enumerate(DataLoader(Images(), batch_size=20)):
    loss = model(batch).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.02)
    if rank == 0 and step % 50 == 0:
        print(f"step {step}", flush=True)
dist.destroy_process_group()
