import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
weights = torch.zeros(64)
for step in range(120):
    gradient = torch.randn(64)
    dist.all_reduce(gradient)
    weights -= 0.01 * gradient / dist.get_world_size()
    if step % 20 == 0 and dist.get_rank() == 0:
        print(f"step {step} norm {weights.norm():.4f}", flush=True)
    time.sleep(0.05)
dist.destroy_process_group()
