"""Ranks: 4. Slow: 3. Sequences are sorted by length and cut into four parts: rank 3 has the longest."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
length = 320 if rank == 3 else 16
model = DistributedDataParallel(torch.nn.LSTM(32, 64, batch_first=True))
optimizer = torch.optim.AdamW(model.parameters())
for step in range(100_000):
    out, _ = model(torch.randn(8, length, 32))
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if rank == 0 and step % 50 == 0:
        print(f"step {step} loss {loss.item():.3f}", flush=True)
