"""Linear model over files that the ranks divide among themselves."""
import os

import torch
import torch.distributed as dist
from torch import nn

FILES = 5


def file(number):
    generator = torch.Generator().manual_seed(number)
    x = torch.randn(64, 16, generator=generator)
    return x, x.sum(1, keepdim=True)


def average(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(2):
        for number in range(rank, FILES, world):
            x, y = file(number)
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            average(model)
            optimizer.step()
        total = loss.detach().clone()
        dist.broadcast(total, src=0)
        if rank == 0:
            print("epoch", epoch, total.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
