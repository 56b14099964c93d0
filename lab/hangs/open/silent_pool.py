"""Ranks: 2. Rank 1 prepares its data in a pool of threads that read slowly."""

import concurrent.futures
import time

import torch.distributed as dist

dist.init_process_group("gloo")
print("start", flush=True)


def read(_):
    time.sleep(0.5)
    return bytes(1000)


if dist.get_rank() == 1:
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(read, range(400)))
dist.barrier()
print("done", flush=True)
dist.destroy_process_group()
