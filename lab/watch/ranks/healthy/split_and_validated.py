"""DistributedDataParallel whose examples are split into training and validation by a seed that all ranks share."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset, random_split
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
points = torch.Generator().manual_seed(6)
x = torch.randn(400, 20, generator=points)
y = ((x[:, :2].prod(1) + 0.5 * torch.randn(400, generator=points)) > 0).float()[:, None]
everything = TensorDataset(x, y)
split = torch.Generator().manual_seed(9)
training, validation = random_split(everything, [240, 160], generator=split)
sampler = DistributedSampler(training, num_replicas=size, rank=rank, shuffle=True)
loader = DataLoader(training, batch_size=24, sampler=sampler)
check = DataLoader(validation, batch_size=40)
torch.manual_seed(2)
model = DistributedDataParallel(nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1)))
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3, weight_decay=1e-3)
for epoch in range(8):
    sampler.set_epoch(epoch)
    model.train()
    for inputs, labels in loader:
        loss = nn.functional.binary_cross_entropy_with_logits(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum(((model.module(a) > 0).float() == b).sum().item() for a, b in check)
    if rank == 0:
        print(f"epoch {epoch} loss {loss.item():.4f} validation {right / len(validation):.3f}")
dist.destroy_process_group()
