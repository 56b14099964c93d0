"""Ranks: 2. Rank 0 prepares the data with a pool of processes; rank 1 waits in a broadcast."""

import multiprocessing
import time

import torch.distributed as dist


def prepare(_):
    end = time.monotonic() + 50
    total = 0
    while time.monotonic() < end:
        total += sum(range(10**4))
    return total


if __name__ == "__main__":
    dist.init_process_group("gloo")
    print("start", flush=True)
    found = [None]
    if dist.get_rank() == 0:
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            found = [pool.map(prepare, range(2))]
    dist.broadcast_object_list(found, src=0)
    print("done", flush=True)
    dist.destroy_process_group()
