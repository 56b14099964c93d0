"""Rank 1 opens a named pipe that nobody writes to."""

import os
import tempfile

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
pipe = os.path.join(tempfile.mkdtemp(), "features")
os.mkfifo(pipe)


def features(step):
    if rank == 1 and step == 3:
        with open(pipe, "rb") as file:  # <- waits
            return torch.tensor(list(file.read()))
    return torch.ones(4)


for step in range(100):
    dist.all_reduce(features(step))
    if rank == 0:
        print(f"step {step}", flush=True)
