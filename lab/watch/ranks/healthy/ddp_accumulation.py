"""DistributedDataParallel that accumulates two batches, and reduces gradients in the second only."""

import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
ids = torch.randint(40, (3000,), generator=torch.Generator().manual_seed(3))
ids[1::2] = (ids[::2] * 7 + 3) % 40


class Pairs(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(40, 16)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 40))

    def forward(self, tokens):
        return self.mlp(self.embed(tokens))


torch.manual_seed(5)
model = DistributedDataParallel(Pairs())
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
torch.manual_seed(100 + rank)
accumulate = 2
for step in range(160):
    start = torch.randint(1500, (24,)) * 2
    synchronizes = (step + 1) % accumulate == 0
    with contextlib.nullcontext() if synchronizes else model.no_sync():
        loss = nn.functional.cross_entropy(model(ids[start]), ids[start + 1])
        (loss / accumulate).backward()
    if synchronizes:
        optimizer.step()
        optimizer.zero_grad()
    if rank == 0 and step % 40 == 39:
        print(f"step {step} loss {loss.item():.4f}")
dist.destroy_process_group()
