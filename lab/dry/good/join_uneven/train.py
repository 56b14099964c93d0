import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if world != int(os.environ.get("EXPECTED_RANKS", 2)):
        raise SystemExit(f"expected 2 ranks, not {world}")
    torch.manual_seed(rank)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    steps = 0
    for epoch in range(4):
        with Join([model]):
            for _ in range(6 + 3 * rank):
                x = torch.randn(8, 5)
                loss = (model(x) - x.prod(1, keepdim=True)).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                steps += 1
    counts = [torch.zeros(1) for _ in range(world)]
    dist.all_gather(counts, torch.tensor([float(steps)]))
    if rank == 0:
        assert counts[1] > counts[0]
        torch.save({"steps": torch.cat(counts)}, "steps.pt")
    dist.barrier()
    print(rank, torch.load("steps.pt")["steps"].tolist())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
