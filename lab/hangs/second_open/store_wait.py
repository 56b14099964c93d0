"""Ranks: 3. Rank 1 waits for a key in the store that rank 0 sets under another name."""

import datetime

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _get_default_store

dist.init_process_group("gloo", timeout=datetime.timedelta(hours=1))
rank = dist.get_rank()
store = _get_default_store()
for step in range(100):
    if step == 30 and rank == 0:
        store.set(f"dataset_{step}", "ready")
    if step == 30 and rank == 1:
        store.wait([f"dataset-{step}"], datetime.timedelta(hours=1))  # <- waits
    dist.all_reduce(torch.ones(4))
    if rank == 2:
        print(f"step {step}", flush=True)
