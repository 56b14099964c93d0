"""Ranks: 3. Slow: 2. From step 400 on rank 2 computes at two thirds of its speed."""

import time

import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()


class Slow(torch.nn.Module):
    """Stands for a device: the time that a forward pass takes."""

    def forward(self, x):
        time.sleep(0.030 if rank == 2 and step >= 400 else 0.020)
        return x


model = torch.nn.parallel.DistributedDataParallel(
    torch.nn.Sequential(torch.nn.Linear(8, 8), Slow(), torch.nn.Linear(8, 1))
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(100_000):
    loss = model(torch.randn(4, 8)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if rank == 0 and step % 50 == 0:
        print(f"step {step}", flush=True)
dist.destroy_process_group()
