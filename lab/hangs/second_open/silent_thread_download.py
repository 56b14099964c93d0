"""Ranks: 2. Rank 0 waits for the thread that downloads the weights in small pieces."""

import threading
import time

import torch.distributed as dist

dist.init_process_group("gloo")
print("start", flush=True)
parts = []


def download():
    for _ in range(100):
        time.sleep(0.5)
        parts.append(bytes(1000))


if dist.get_rank() == 0:
    thread = threading.Thread(target=download)
    thread.start()
    thread.join()
dist.barrier()
print("done", flush=True)
dist.destroy_process_group()
