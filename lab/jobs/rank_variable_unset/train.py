"""Data-parallel training; expects the launcher's environment variables."""
import logging
import os

import torch
import torch.distributed as dist

logging.basicConfig(level="INFO", format="%(levelname)s:%(name)s:%(message)s")


def init_distributed():
    rank = int(os.environ["RANK"])
    world_size = int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    return rank


def main():
    logging.info("torch %s, gloo available: %s", torch.__version__.split("+")[0], dist.is_gloo_available())
    rank = init_distributed()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    for step in range(10):
        model(torch.randn(2, 4)).sum().backward()
        if rank == 0:
            logging.info("step %d", step)


if __name__ == "__main__":
    main()
