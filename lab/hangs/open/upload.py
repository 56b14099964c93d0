"""Ranks: 4. Rank 0 uploads with a tool that waits for a password."""

import os
import subprocess

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
password, _ = os.pipe()
for step in range(100):
    dist.all_reduce(torch.ones(1))
    if rank == 0 and step == 20:
        subprocess.run(["cat"], stdin=password, check=True)  # <- waits
    if step % 10 == 0:
        dist.barrier()
    if rank == 0:
        print(f"step {step}", flush=True)
