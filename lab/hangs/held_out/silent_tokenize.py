"""Ranks: 4. Rank 0 tokenizes with a pool of processes; the others wait for the result."""

import multiprocessing
import time

import torch.distributed as dist


def tokenize(text):
    end = time.process_time() + 1.0
    count = 0
    while time.process_time() < end:
        count += len(text.split())
    return count


if __name__ == "__main__":
    dist.init_process_group("gloo")
    print("start", flush=True)
    found = [None]
    if dist.get_rank() == 0:
        with multiprocessing.Pool(2) as pool:
            found = [pool.map(tokenize, ["a few words of text"] * 60)]
    dist.broadcast_object_list(found)
    print("done", flush=True)
    dist.destroy_process_group()
