import argparse

import torch
import torch.distributed as dist
from torch import nn


def per_rank(total):
    world = dist.get_world_size()
    each, rest = divmod(total, world)
    if rest:
        raise ValueError(f"--global-batch {total} is not a multiple of {world} ranks")
    return each


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--global-batch", type=int, default=64)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    batch = per_rank(options.global_batch)
    model = nn.parallel.DistributedDataParallel(nn.Linear(7, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(100):
        loss = model(torch.randn(batch, 7)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
