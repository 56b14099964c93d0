"""Started once per task by launch.sh with RANK and WORLD_SIZE set."""
import datetime
import logging
import os

import torch
import torch.distributed as dist

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
logging.info("task %s of %s, master %s:%s", os.environ["RANK"], os.environ["WORLD_SIZE"],
             os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"])
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=6))
x = torch.ones(3)
dist.all_reduce(x)
logging.info("sum %s", x.tolist())
dist.destroy_process_group()
