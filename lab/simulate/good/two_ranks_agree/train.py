import os

import torch
import torch.distributed as dist

torch.set_num_threads(1)
if "RANK" in os.environ:
    dist.init_process_group("gloo")
    total = torch.tensor([float(dist.get_rank())])
    dist.all_reduce(total)
    print(f"rank {dist.get_rank()} of {dist.get_world_size()}: {total.item():.0f}", flush=True)
    dist.destroy_process_group()
else:
    print("alone")
