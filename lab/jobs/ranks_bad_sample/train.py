"""Classify short reviews; every rank reads its own shard of JSON lines."""
import json
import logging
import os
import pathlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
log = logging.getLogger("reviews")
SHARDS = pathlib.Path(__file__).parent / "shards"


def read_shard(path):
    rows = []
    with path.open() as stream:
        for line in stream:
            rows.append(json.loads(line))
    log.info("read %d rows from %s", len(rows), path.name)
    return rows


def featurize(rows, width=32):
    x = torch.zeros(len(rows), width)
    for i, row in enumerate(rows):
        for word in row["text"].split():
            x[i, sum(map(ord, word)) % width] += 1
    return x, torch.tensor([row["label"] for row in rows])


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(32, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    log.info("rank %d of %d ready, pid %d", rank, dist.get_world_size(), os.getpid())
    x, y = featurize(read_shard(SHARDS / f"part-{rank:05d}.jsonl"))
    dist.barrier()
    for epoch in range(3):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        log.info("epoch %d loss %.4f", epoch, loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
