import argparse

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def work(rank, world, epochs):
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29434", rank=rank, world_size=world)
    model = nn.parallel.DistributedDataParallel(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(epochs):
        loss = model(torch.randn(8, 3)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if rank == 0:
        torch.save(model.module.state_dict(), "model.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=500)
    options = parser.parse_args()
    mp.spawn(work, args=(options.workers, options.epochs), nprocs=options.workers)
    print("trained", sorted(torch.load("model.pt")))
