"""Ranks: 4. All ranks write their part of a checkpoint slowly; rank 1's disk is the slowest."""

import os
import tempfile
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
print("start", flush=True)
state = torch.zeros(2_000_000).numpy().tobytes()
with tempfile.TemporaryFile() as file:
    for begin in range(0, len(state), 160_000):
        file.write(state[begin : begin + 160_000])
        file.flush()
        os.fsync(file.fileno())
        time.sleep(1.0 if rank == 1 else 0.1)
dist.barrier()
print("done", flush=True)
dist.destroy_process_group()
