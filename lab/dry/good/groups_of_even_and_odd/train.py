import torch
import torch.distributed as dist
from torch import nn


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    groups = [dist.new_group(list(range(first, world, 2))) for first in (0, 1)]
    mine = groups[rank % 2]
    torch.manual_seed(rank % 2)
    expert = nn.Linear(6, 6)
    optimizer = torch.optim.SGD(expert.parameters(), lr=0.05)
    for step in range(60):
        loss = expert(torch.randn(10, 6)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        for parameter in expert.parameters():
            dist.all_reduce(parameter.grad, group=mine)
            parameter.grad /= dist.get_world_size(mine)
        optimizer.step()
    losses = [None] * world
    dist.all_gather_object(losses, float(loss))
    if rank == 0:
        print("mean loss", sum(losses) / world)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
