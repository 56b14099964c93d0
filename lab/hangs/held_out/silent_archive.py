"""Ranks: 3. Each rank unpacks its shard with a tool; rank 2's is larger."""

import subprocess
import sys

import torch.distributed as dist

WORK = "import time, zlib; d = bytes(range(256)) * 4000; e = time.time() + {}\nwhile time.time() < e: zlib.compress(d, 9)"
dist.init_process_group("gloo")
rank = dist.get_rank()
print("start", flush=True)
subprocess.run([sys.executable, "-c", WORK.format(50 if rank == 2 else 2)], check=True)
dist.barrier()
print("done", flush=True)
dist.destroy_process_group()
