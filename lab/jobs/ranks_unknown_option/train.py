import argparse
import os

import torch.distributed as dist

p = argparse.ArgumentParser(description="Train the detector.")
p.add_argument("--epochs", type=int, default=1)
p.add_argument("--batch-size", type=int, default=8)
p.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
args = p.parse_args(os.environ.get("EXTRA_ARGS", "").split() or None)
dist.init_process_group("gloo")
print("rank", dist.get_rank(), args)
dist.barrier()
