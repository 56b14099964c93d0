import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F


def batch(rank, step):
    g = torch.Generator().manual_seed(rank * 100 + step)
    x = torch.randn(16, 10, generator=g)
    y = torch.randint(0, 4, (16,), generator=g)
    if rank == 1 and step == 3:
        y[5] = 4          # classes are 0..3, an annotator counted from 1
    return x, y


def worker(rank, world):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29651")
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)
    net = torch.nn.Linear(10, 4)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(8):
        x, y = batch(rank, step)
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        for p in net.parameters():
            dist.all_reduce(p.grad)
        opt.step()
        print(f"worker {rank}: step {step} loss {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(3,), nprocs=3)
