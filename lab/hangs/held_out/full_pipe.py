"""Ranks: 4. Rank 0 waits for a tool whose output nobody reads, and the tool waits for the pipe to be read."""

import subprocess
import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()


def report_usage():
    tool = subprocess.Popen(
        [sys.executable, "-c", "print('x' * 1_000_000)"], stdout=subprocess.PIPE
    )
    tool.wait()  # <- waits
    return tool.stdout.read()


for step in range(100):
    dist.all_reduce(torch.ones(8))
    if rank == 0 and step == 20:
        report_usage()
    if rank == 0:
        print(f"step {step}", flush=True)
