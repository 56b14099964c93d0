"""Multi-task training: each rank owns one task and its loss."""
import logging
import os

import torch
import torch.distributed as dist


class Task:
    def __init__(self, width=12):
        self.head = torch.nn.Linear(width, 3)

    def loss(self, features):
        raise NotImplementedError(f"{type(self).__name__} has no loss")


class Depth(Task):
    def loss(self, features):
        return self.head(features).pow(2).mean()


class Normals(Task):
    def loss(self, features):
        return (1 - torch.nn.functional.normalize(self.head(features))).mean()


class Edges(Task):
    def penalty(self, features):        # was loss() before the rename
        return self.head(features).abs().mean()


TASKS = [Depth, Normals, Edges]


def main():
    rank = int(os.environ["RANK"])
    logging.basicConfig(
        filename=f"logs/rank_{rank}.log", level=logging.INFO,
        format="%(asctime)s %(process)d %(levelname)s %(message)s")
    dist.init_process_group("gloo")
    task = TASKS[rank]()
    logging.info("rank %d trains %s", rank, type(task).__name__)
    for step in range(3):
        try:
            loss = task.loss(torch.randn(8, 12))
            total = loss.detach().clone()
            dist.all_reduce(total)
        except Exception:
            logging.exception("step %d failed", step)
            raise SystemExit(1)
        logging.info("step %d loss %.4f total %.4f", step, loss.item(), total.item())


main()
