"""Voxel autoencoder, data parallel."""
import argparse
import os
from contextlib import contextmanager

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@contextmanager
def group():
    rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    try:
        yield rank, torch.device("cuda", local)
    finally:
        dist.destroy_process_group()


class Auto(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv3d(1, width, 4, 2, 1), nn.ELU(),
                                     nn.Conv3d(width, 2 * width, 4, 2, 1), nn.ELU())
        self.decoder = nn.Sequential(nn.ConvTranspose3d(2 * width, width, 4, 2, 1), nn.ELU(),
                                     nn.ConvTranspose3d(width, 1, 4, 2, 1))

    def forward(self, x):
        return self.decoder(self.encoder(x))


def scans(path):
    with np.load(path) as f:
        return TensorDataset(torch.from_numpy(f["occupancy"]).float().unsqueeze(1))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data")
    p.add_argument("--epochs", type=int, default=20)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--out", default="/scratch/vox")
    args = p.parse_args()
    with group() as (rank, device):
        data = scans(args.data)
        sampler = DistributedSampler(data, shuffle=True)
        loader = DataLoader(data, args.batch, sampler=sampler, pin_memory=True, drop_last=True)
        model = DistributedDataParallel(Auto().to(device), device_ids=[device.index])
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        if rank == 0:
            os.makedirs(args.out, exist_ok=True)
        for epoch in range(args.epochs):
            sampler.set_epoch(epoch)
            total = torch.zeros((), device=device)
            for (x,) in loader:
                x = x.to(device, non_blocking=True)
                loss = nn.functional.binary_cross_entropy_with_logits(model(x), x)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                total += loss.detach()
            dist.all_reduce(total)
            if rank == 0:
                print(epoch, total.item() / max(len(loader), 1) / dist.get_world_size(), flush=True)
                torch.save(model.module.state_dict(), os.path.join(args.out, "auto.pt"))
        dist.barrier()


if __name__ == "__main__":
    main()
