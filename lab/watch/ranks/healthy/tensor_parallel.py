"""Tensor parallel with DTensor: two layers are split, the rest is on all ranks, which read the same batch."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("tensor",))
torch.manual_seed(3)
body = nn.Sequential(nn.Linear(10, 48), nn.GELU(), nn.Linear(48, 16))
model = nn.Sequential(nn.LayerNorm(10), body, nn.Dropout(0.1), nn.Linear(16, 3))
parallelize_module(body, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
data = torch.Generator().manual_seed(8)
centers = torch.randn(3, 10, generator=data)
torch.manual_seed(21)
for step in range(90):
    y = torch.randint(3, (32,), generator=data)
    x = centers[y] + 0.8 * torch.randn(32, 10, generator=data)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if rank == 0 and step % 30 == 29:
        print(f"step {step} loss {loss.item():.4f}")
dist.destroy_process_group()
