"""DistributedDataParallel with a DistributedSampler: six classes in 16 dimensions."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
labels = torch.randint(6, (960,))
points = torch.randn(6, 16)[labels] * 1.5 + torch.randn(960, 16)
data = TensorDataset(points[:800], labels[:800])
sampler = DistributedSampler(data, num_replicas=size, rank=rank, shuffle=True)
loader = DataLoader(data, batch_size=20, sampler=sampler)

model = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 6))
ddp = DistributedDataParallel(model)
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05 * size, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
for epoch in range(4):
    sampler.set_epoch(epoch)
    ddp.train()
    for x, y in loader:
        loss = nn.functional.cross_entropy(ddp(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    if rank == 0:
        model.eval()
        with torch.no_grad():
            right = (model(points[800:]).argmax(1) == labels[800:]).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.3f} accuracy {right:.3f}")
    dist.barrier()
dist.destroy_process_group()
