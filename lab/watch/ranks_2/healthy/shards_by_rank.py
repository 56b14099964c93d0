"""A regression on four ranks whose examples are stored in shards: each rank streams every fourth shard."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

GPUS_PER_NODE = 2

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(11)
weights = torch.randn(12, 1)
inputs = torch.randn(2560, 12)
targets = torch.sin(inputs @ weights / 2) + 0.05 * torch.randn(2560, 1)
shards = [(x, y) for x, y in zip(inputs.chunk(32), targets.chunk(32), strict=True)]
held_inputs = torch.randn(400, 12)
held_targets = torch.sin(held_inputs @ weights / 2)


class Stream(IterableDataset):
    def __init__(self, shards, index, count):
        self.shards = shards[index::count]
        self.epoch = 0

    def __iter__(self):
        generator = torch.Generator().manual_seed(1000 * self.epoch)
        for i in torch.randperm(len(self.shards), generator=generator).tolist():
            x, y = self.shards[i]
            for j in torch.randperm(len(x), generator=generator).tolist():
                yield x[j], y[j]


model = nn.Sequential(nn.Linear(12, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
ddp = DistributedDataParallel(model)
optimizer = torch.optim.AdamW(ddp.parameters(), lr=3e-3)
stream = Stream(shards, rank, world)
loader = DataLoader(stream, batch_size=32)
for epoch in range(10):
    stream.epoch = epoch
    ddp.train()
    for x, y in loader:
        loss = nn.functional.mse_loss(ddp(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ddp.eval()
    with torch.no_grad():
        error = nn.functional.mse_loss(model(held_inputs), held_targets)
    if rank == 0:
        print(f"epoch {epoch} train {loss.item():.4f} val mse {error.item():.4f}")
dist.destroy_process_group()
