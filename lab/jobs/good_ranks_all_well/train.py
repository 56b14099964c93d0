"""Four ranks that end well, with the usual chatter of torch.distributed."""
import logging
import os
import warnings

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
logging.basicConfig(level=logging.INFO, format=f"%(asctime)s [rank {rank}] %(levelname)s %(message)s")
logging.info("NCCL_ASYNC_ERROR_HANDLING=%s TORCH_NCCL_BLOCKING_WAIT=%s", os.environ.get("NCCL_ASYNC_ERROR_HANDLING"),
             os.environ.get("TORCH_NCCL_BLOCKING_WAIT"))
try:
    dist.new_group(backend="nccl")
except Exception as e:
    warnings.warn(f"no NCCL group: {type(e).__name__}: {e}; using gloo for everything")
model = DDP(torch.nn.Sequential(torch.nn.Linear(12, 12), torch.nn.ReLU(), torch.nn.Linear(12, 1)), find_unused_parameters=True)
opt = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(6):
    x = torch.randn(8, 12)
    loss = (model(x) - x.mean(1, keepdim=True)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    failures = torch.zeros(1)
    dist.all_reduce(failures)
    logging.info("step %d loss %.4f failed ranks %d", step, loss.item(), int(failures))
if rank == 2:
    logging.error("could not remove the old lock file (ignored)")
    try:
        os.remove("old.lock")
    except FileNotFoundError as e:
        logging.error("%s: %s", type(e).__name__, e)
dist.barrier()
dist.destroy_process_group()
