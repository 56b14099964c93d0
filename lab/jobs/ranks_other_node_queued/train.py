import datetime
import logging
import os

import torch
import torch.distributed as dist

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("train")


def main():
    log.info("rank %s of %s waits for the others", os.environ["RANK"], os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=6))
    gradient = torch.ones(100) * dist.get_rank()
    for step in range(20):
        dist.all_reduce(gradient)
        gradient /= dist.get_world_size()
    log.info("mean gradient %.3f", gradient.mean())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
