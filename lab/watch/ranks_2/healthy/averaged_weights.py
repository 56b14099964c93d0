"""Denoising of curves on two ranks with accumulated gradients; an average of the weights is evaluated, in parts, by all ranks."""

import contextlib
import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

ACCUMULATE = 2

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(91)
time = torch.linspace(0, 1, 48)
clean = torch.sin(6.28 * (1 + 3 * torch.rand(1600, 1)) * time + 6.28 * torch.rand(1600, 1))
noisy = clean + 0.3 * torch.randn_like(clean)
train = TensorDataset(noisy[:1280], clean[:1280])
val_noisy, val_clean = noisy[1280 + rank :: world], clean[1280 + rank :: world]


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, 24, 7, padding=3), nn.GELU(), nn.Conv1d(24, 24, 7, padding=3), nn.GELU()
        )
        self.out = nn.Conv1d(24, 1, 7, padding=3)

    def forward(self, curve):
        x = curve.unsqueeze(1)
        return (x + self.out(self.net(x))).squeeze(1)


model = Denoiser()
averaged = copy.deepcopy(model).requires_grad_(False)
ddp = DistributedDataParallel(model)
optimizer = torch.optim.AdamW(ddp.parameters(), lr=4e-3)
sampler = DistributedSampler(train)
loader = DataLoader(train, batch_size=16, sampler=sampler)
for epoch in range(6):
    sampler.set_epoch(epoch)
    for i, (x, y) in enumerate(loader):
        last = (i + 1) % ACCUMULATE == 0
        with contextlib.nullcontext() if last else ddp.no_sync():
            loss = nn.functional.mse_loss(ddp(x), y) / ACCUMULATE
            loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
            with torch.no_grad():
                for mean, value in zip(averaged.parameters(), model.parameters(), strict=True):
                    mean.lerp_(value, 0.05)
    with torch.no_grad():
        error = nn.functional.mse_loss(averaged(val_noisy), val_clean)
    dist.all_reduce(error)
    if rank == 0:
        print(f"epoch {epoch} train {ACCUMULATE * loss.item():.4f} val mse {error.item() / world:.4f}")
dist.destroy_process_group()
