"""Only rank 0 reaches the barrier; rank 1 goes on to the next step."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)


def save(step):
    if rank == 0:
        torch.save(model.module.state_dict(), "/dev/null")
        dist.barrier()  # <- waits


for step in range(100):
    loss = model(torch.randn(4, 8)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 3:
        save(step)
    print(f"rank {rank} step {step} loss {loss.item():.4f}", flush=True)
