"""Rank 0 writes a checkpoint in small parts, each of which a slow disk has to confirm."""

import os
import tempfile
import time

import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
print("start", flush=True)
if rank == 0:
    with tempfile.TemporaryFile() as file:
        for _ in range(50):
            file.write(os.urandom(1 << 16))
            file.flush()
            os.fsync(file.fileno())
            time.sleep(1)
dist.barrier()
print("done", flush=True)
dist.destroy_process_group()
