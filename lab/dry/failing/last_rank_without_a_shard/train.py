import os

import numpy as np
import torch
import torch.distributed as dist
from torch import nn


def load(rank):
    return torch.from_numpy(np.loadtxt(f"shards/part-{rank:02d}.csv", delimiter=",", dtype=np.float32))


def main():
    dist.init_process_group("gloo")
    rows = load(int(os.environ["RANK"]))
    model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(20):
        loss = (model(rows[:, :2]) - rows[:, 2:]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
