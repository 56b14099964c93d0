import argparse
import os
import pathlib

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.body = nn.Sequential(nn.Conv3d(1, width, 3, padding=1), nn.ReLU(), nn.Conv3d(width, 1, 3, padding=1))

    def forward(self, x):
        return self.body(x)


def setup():
    rank = int(os.environ.get("RANK", 0))
    local = int(os.environ.get("LOCAL_RANK", 0))
    if torch.cuda.is_available():
        torch.cuda.set_device(local % torch.cuda.device_count())
        device = torch.device("cuda", local % torch.cuda.device_count())
    else:
        device = torch.device("cpu")
    if "RANK" in os.environ:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return rank, device


def strip(state, prefixes=("module.", "_orig_mod.")):
    out = {}
    for name, value in state.items():
        for prefix in prefixes:
            name = name.removeprefix(prefix)
        out[name] = value
    return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", required=True)
    p.add_argument("--epochs", type=int, default=60)
    p.add_argument("--out", type=pathlib.Path, default=pathlib.Path("/scratch/pretrain"))
    args = p.parse_args()
    rank, device = setup()
    data = torch.from_numpy(np.load(args.data)["occupancy"]).float()[:, None]
    net = Net().to(device)
    model = DDP(net, device_ids=[device.index] if device.type == "cuda" else None) if dist.is_initialized() else net
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    world = dist.get_world_size() if dist.is_initialized() else 1
    mine = data[rank::world]
    path = args.out / "last.pt"
    if rank == 0:
        args.out.mkdir(parents=True, exist_ok=True)
    for epoch in range(args.epochs):
        for x in mine[: len(data) // world].split(8):
            x = x.to(device)
            loss = nn.functional.mse_loss(model(x), x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            torch.save({"model": model.state_dict(), "args": args, "epoch": epoch}, path)
    if dist.is_initialized():
        dist.barrier()
    if rank == 0:
        torch.serialization.add_safe_globals([argparse.Namespace, pathlib.PosixPath])
        saved = torch.load(path, map_location=device, weights_only=False)
        fresh = Net().to(device)
        missing = fresh.load_state_dict(strip(saved["model"]), strict=False)
        assert not missing.missing_keys, missing
        print("epoch", saved["epoch"], "of", saved["args"].epochs, loss.item())
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
