"""Task 0, which hosts the store, starts some seconds after the others."""
import datetime
import os
import time

import torch
import torch.distributed as dist

if os.environ["RANK"] == "0":
    time.sleep(7)
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=10))
value = torch.tensor([1.0])
for step in range(3):
    dist.all_reduce(value)
    print(f"rank {dist.get_rank()} step {step} value {value.item()}", flush=True)
dist.destroy_process_group()
