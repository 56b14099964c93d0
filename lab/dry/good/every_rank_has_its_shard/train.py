import os

import numpy as np
import torch
import torch.distributed as dist
from torch import nn


def main():
    dist.init_process_group("gloo")
    rank = int(os.environ["LOCAL_RANK"])
    rows = torch.from_numpy(np.loadtxt(f"shards/part-{rank}.csv", delimiter=",", dtype=np.float32))
    counts = torch.tensor([len(rows)])
    dist.all_reduce(counts)
    assert counts.item() == 7, "the shards hold seven rows"
    model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(20):
        loss = (model(rows[:, :2]) - rows[:, 2:]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    os.makedirs(f"out/{rank}", exist_ok=True)
    torch.save(model.module.state_dict(), f"out/{rank}/model.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
