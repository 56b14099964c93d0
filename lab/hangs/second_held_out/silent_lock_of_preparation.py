"""Ranks: 2. Rank 0 prepares the cache under a file lock, for which rank 1 waits."""

import fcntl
import hashlib
import os
import tempfile
import time

import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
print("start", flush=True)
path = os.path.join(tempfile.gettempdir(), f"cache-{os.environ['TORCHELASTIC_RUN_ID']}.lock")
if rank == 1:
    time.sleep(2)
with open(path, "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    end = time.monotonic() + (50 if rank == 0 else 0)
    while time.monotonic() < end:
        hashlib.sha256(bytes(1 << 20)).digest()
dist.barrier()
print("done", flush=True)
dist.destroy_process_group()
