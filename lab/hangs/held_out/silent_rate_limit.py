"""Ranks: 2. Rank 0 is refused by a hub that limits requests, and waits before it asks again."""

import time

import torch.distributed as dist

dist.init_process_group("gloo")
print("start", flush=True)


def download(attempt):
    if attempt < 1:
        raise ConnectionError("429 Too Many Requests")
    return bytes(10)


if dist.get_rank() == 0:
    for attempt in range(2):
        try:
            download(attempt)
        except ConnectionError:
            time.sleep(50)
dist.barrier()
print("done", flush=True)
dist.destroy_process_group()
