import math

import torch
import torch.distributed as dist
from torch import nn


def evaluate(model, samples, rank, world):
    part = math.ceil(len(samples) / world)
    mine = samples[rank * part : (rank + 1) * part]
    wrong = 0
    for x, y in mine:
        wrong += int(model(x[None]).argmax(1).item() != y)
    return wrong / len(mine)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train = torch.randn(64, 4)
    for epoch in range(3):
        loss = nn.functional.cross_entropy(model(train), train.argmax(1).clamp(max=2))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    samples = [(torch.randn(4), n % 3) for n in range(9)]
    error = torch.tensor(evaluate(model.module, samples, rank, world))
    dist.all_reduce(error)
    if rank == 0:
        print("error", error.item() / world)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
