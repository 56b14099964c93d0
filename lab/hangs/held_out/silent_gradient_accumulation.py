"""Ranks: 2. A step of many micro-batches: no output and no collective until its end."""

import time

import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 1))
model = torch.nn.parallel.DistributedDataParallel(net)
print("start", flush=True)
end = time.monotonic() + 50
with model.no_sync():
    while time.monotonic() < end:
        model(torch.randn(256, 512)).pow(2).mean().backward()
model(torch.randn(256, 512)).pow(2).mean().backward()
print("done", flush=True)
dist.destroy_process_group()
