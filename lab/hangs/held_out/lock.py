"""Rank 1 waits for a file lock that a process of an earlier run still holds."""

import fcntl
import subprocess
import sys
import tempfile

import torch
import torch.distributed as dist

HOLDER = "import fcntl, os, sys, time; fcntl.flock(3, fcntl.LOCK_EX); print('held', flush=True); time.sleep(900)"

dist.init_process_group("gloo")
rank = dist.get_rank()
print("start", flush=True)


def rebuild_cache(path):
    with open(path, "w") as mine:
        command = ["sh", "-c", f'exec {sys.executable} -c "{HOLDER}" 3>{path}']
        holder = subprocess.Popen(command, stdout=subprocess.PIPE)
        holder.stdout.readline()
        fcntl.flock(mine, fcntl.LOCK_EX)  # <- waits


for step in range(100):
    if rank == 1 and step == 2:
        rebuild_cache(tempfile.mktemp())
    dist.all_reduce(torch.ones(4))
