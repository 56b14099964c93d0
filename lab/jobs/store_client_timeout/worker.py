import datetime
import logging
import os

import torch
import torch.distributed as dist

logging.basicConfig(level=logging.INFO, format="[%(levelname)s] %(message)s")


def main():
    address = f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    logging.info("rank %d of %d joins %s", rank, world, address)
    dist.init_process_group(
        "gloo", init_method=address, rank=rank, world_size=world,
        timeout=datetime.timedelta(seconds=4),
    )
    weights = torch.zeros(10)
    dist.broadcast(weights, src=0)
    for step in range(100):
        gradient = torch.randn(10)
        dist.all_reduce(gradient)
        weights -= 0.01 * gradient / world
    logging.info("done")
    dist.destroy_process_group()


main()
