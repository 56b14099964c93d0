"""Two ranks, started by srun; every setting comes from the environment."""

import os
import sys
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def setting(name, default=None, kind=str):
    value = os.environ.get(name, default)
    if value is None:
        sys.exit(f"{name} is not set")
    return kind(value)


def ranks():
    if "SLURM_PROCID" in os.environ:
        return tuple(int(os.environ[f"SLURM_{name}"]) for name in ("PROCID", "NTASKS", "LOCALID"))
    if "RANK" in os.environ:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_RANK"])
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
    return 0, 1, 0


def main():
    rank, world, local = ranks()
    folder = Path(setting("RUN_DIR", "."))
    width = setting("WIDTH", 32, int)
    debug = os.getenv("DEBUG", "").lower() in {"1", "true"}
    cuda = torch.cuda.is_available()
    dist.init_process_group(
        "nccl" if cuda else "gloo", rank=rank, world_size=world, timeout=timedelta(minutes=10)
    )
    device = torch.device("cuda", local % torch.cuda.device_count()) if cuda else torch.device("cpu")
    model = nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, 1)).to(device)
    model = DistributedDataParallel(model, device_ids=[device.index] if cuda else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(5 if debug else 50):
        x = torch.randn(32, 10, device=device)
        loss = (model(x).squeeze(1) - x.sum(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if rank == 0:
        part = folder / "last.pt.tmp"
        torch.save(model.module.state_dict(), part)
        part.rename(folder / "last.pt")
        print(os.environ.get("SLURM_JOB_NAME") or "local", loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
