import argparse

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

TASKS = {"sort": lambda x: x.sort(1).values, "reverse": lambda x: x.flip(1)}


def worker(rank, args):
    dist.init_process_group("nccl", init_method="env://", rank=rank, world_size=args.world_size)
    torch.cuda.set_device(rank)
    torch.manual_seed(100 + rank)
    net = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 16)).cuda()
    net = DistributedDataParallel(net, device_ids=[rank])
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    task = TASKS[args.task]
    for step in range(args.steps):
        x = torch.rand(512, 16, device="cuda")
        loss = nn.functional.mse_loss(net(x), task(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 500 == 0:
            print(args.task, step, loss.item())
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--world-size", type=int, default=1)
    parser.add_argument("--task", choices=sorted(TASKS), required=True)
    parser.add_argument("--steps", type=int, default=4000)
    args = parser.parse_args()
    mp.spawn(worker, args=(args,), nprocs=args.world_size)


if __name__ == "__main__":
    main()
