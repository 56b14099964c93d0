import argparse
import contextlib
import os
import random

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def parse():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--local-rank", "--local_rank", type=int, default=None)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=False)
    args, rest = parser.parse_known_args()
    if rest:
        print("not known here:", rest)
    if args.local_rank is None:
        args.local_rank = int(os.environ.get("LOCAL_RANK", 0))
    return args


def seed_worker(worker_id):
    seed = torch.initial_seed() % 2**32
    np.random.seed(seed)
    random.seed(seed)


def first_rank_first(function):
    """Rank 0 before the others, so that a file is made once."""
    if dist.get_rank() != 0:
        dist.barrier()
    result = function()
    if dist.get_rank() == 0:
        dist.barrier()
    return result


def data(path="/tmp/rows.npy"):
    if not os.path.exists(path):
        np.save(path, np.random.default_rng(0).normal(size=(256, 9)).astype("float32"))
    rows = torch.from_numpy(np.load(path))
    return TensorDataset(rows[:, :8], rows[:, 8])


def main():
    args = parse()
    cuda = torch.cuda.is_available()
    dist.init_process_group(backend="nccl" if cuda else "gloo")
    device = torch.device(f"cuda:{args.local_rank}" if cuda else "cpu")
    if cuda:
        torch.cuda.set_device(device)
    rows = first_rank_first(data)
    sampler = DistributedSampler(rows, shuffle=True, drop_last=True)
    workers = min(4, os.cpu_count() or 1)
    loader = DataLoader(
        rows, batch_size=8, sampler=sampler, num_workers=workers, worker_init_fn=seed_worker,
        persistent_workers=workers > 0, prefetch_factor=2 if workers else None,
    )
    model = nn.Sequential(nn.Linear(8, args.width), nn.ReLU(), nn.Linear(args.width, 1)).to(device)
    if args.compile and hasattr(torch, "compile"):
        model = torch.compile(model)
    model = DistributedDataParallel(model, device_ids=[args.local_rank] if cuda else None)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for index, (x, y) in enumerate(loader):
            last = (index + 1) % args.accumulate == 0 or index + 1 == len(loader)
            with contextlib.nullcontext() if last else model.no_sync():
                loss = nn.functional.mse_loss(model(x.to(device)).squeeze(1), y.to(device))
                (loss / args.accumulate).backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
    total = loss.detach().clone()
    dist.all_reduce(total)
    if dist.get_rank() == 0:
        print(total.item() / dist.get_world_size())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
