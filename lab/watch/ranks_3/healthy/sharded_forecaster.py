"""Forecasts of the load of two grids, a grid per rank, with a small transformer whose parameters are sharded."""

import math

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

SEED = 350
PAST, AHEAD = 32, 4
ACCUMULATE = 2


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.feed = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        y = self.norm_1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.feed(self.norm_2(x))


class Forecaster(nn.Module):
    def __init__(self, width=32, blocks=1):
        super().__init__()
        self.enter = nn.Linear(1, width)
        self.position = nn.Parameter(0.02 * torch.randn(PAST, width))
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(blocks))
        self.leave = nn.Linear(width, AHEAD)

    def forward(self, past):
        x = self.enter(past[..., None]) + self.position
        for block in self.blocks:
            x = block(x)
        return self.leave(x[:, -1])


def load(days, grid, generator):
    """The second grid consumes more, and later in the day."""
    hours = torch.arange(24 * days) - 5 * grid
    daily = torch.sin(2 * math.pi * hours / 24) + 0.5 * torch.sin(4 * math.pi * hours / 24 + 1)
    weekly = 0.6 * torch.cos(2 * math.pi * hours / 168)
    drift = torch.zeros(len(hours))
    shocks = 0.15 * torch.randn(len(hours), generator=generator)
    for t in range(1, len(hours)):
        drift[t] = 0.9 * drift[t - 1] + shocks[t]
    return (daily * (1 + 0.3 * weekly) + weekly + drift) * (1 + 0.8 * grid) + grid


def windows(series):
    cut = series.unfold(0, PAST + AHEAD, 1)
    return cut[:, :PAST], cut[:, PAST:]


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cpu", (world,))
torch.manual_seed(SEED)
generator = torch.Generator().manual_seed(SEED)
train = windows(load(60, rank, torch.Generator().manual_seed(SEED + 1 + rank)))
test = windows(torch.cat([load(20, grid, generator) for grid in range(world)]))

model = Forecaster()
for block in model.blocks:
    fully_shard(block, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.01, foreach=False)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=44)

step = 0
for _ in range(2):
    model.train()
    order = torch.randperm(len(train[0]), generator=generator)[: 22 * ACCUMULATE * 16]
    batches = order.split(16)
    total = 0.0
    for i, batch in enumerate(batches):
        last = (i + 1) % ACCUMULATE == 0
        model.set_requires_gradient_sync(last)
        loss = nn.functional.mse_loss(model(train[0][batch]), train[1][batch]) / ACCUMULATE
        loss.backward()
        total += loss.item()
        if last:
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            step += 1
    model.eval()
    with torch.no_grad():
        error = nn.functional.mse_loss(model(test[0][rank::world]), test[1][rank::world])
    dist.all_reduce(error)
    if rank == 0:
        print(
            f"step {step}  loss {ACCUMULATE * total / len(batches):.4f}  test error {error.item() / world:.4f}"
        )
dist.destroy_process_group()
