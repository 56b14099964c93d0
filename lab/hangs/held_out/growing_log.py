"""Ranks: 2. Slow: 0. From step 300 on rank 0 writes all its measurements anew in each step."""

import json
import os
import tempfile

import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
weights = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(weights.parameters(), lr=0.001)
history = [{"step": n, "loss": 0.0, "rate": 0.001} for n in range(20_000)]
log = os.path.join(tempfile.mkdtemp(), "log.json")
for step in range(100_000):
    loss = weights(torch.randn(256, 64)).pow(2).mean()
    if rank == 0 and step >= 300:
        with open(log, "w") as file:
            json.dump(history, file)
    optimizer.zero_grad()
    loss.backward()
    for parameter in weights.parameters():
        dist.all_reduce(parameter.grad)
    optimizer.step()
    if rank == 0 and step % 50 == 0:
        print(f"step {step}: {loss.item():.3f}", flush=True)
dist.destroy_process_group()
