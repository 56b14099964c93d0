"""Ranks: 2. Rank 0 evaluates with a program of its own; rank 1 waits."""

import subprocess
import sys

import torch.distributed as dist

EVALUATE = (
    "import time\nend = time.monotonic() + 50\nwhile time.monotonic() < end: sum(range(10**5))"
)
dist.init_process_group("gloo")
print("start", flush=True)
if dist.get_rank() == 0:
    subprocess.run([sys.executable, "-c", EVALUATE], check=True)
dist.barrier()
print("done", flush=True)
dist.destroy_process_group()
