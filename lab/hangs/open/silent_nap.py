"""Ranks: 3. Rank 0 gives a service that it has started time to come up."""

import time

import torch.distributed as dist

dist.init_process_group("gloo")
print("start", flush=True)
if dist.get_rank() == 0:
    time.sleep(45)
dist.barrier()
print("done", flush=True)
dist.destroy_process_group()
