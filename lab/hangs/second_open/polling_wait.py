"""Ranks: 2. Rank 0 polls for its asynchronous collective; rank 1 waits for a message that nobody writes."""

import os
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
reader, writer = os.pipe()
for step in range(100):
    if rank == 1 and step == 35:
        os.read(reader, 1)  # <- waits
    work = dist.all_reduce(torch.ones(16), async_op=True)
    while not work.is_completed():
        time.sleep(0.01)
    if rank == 0:
        print(f"step {step}", flush=True)
