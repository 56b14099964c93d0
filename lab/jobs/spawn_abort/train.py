"""Four workers fill a replay buffer; the native sampler aborts when its ring is empty."""
import ctypes
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

libc = ctypes.CDLL(None)


def native_sample(ring):
    if not ring:
        libc.abort()
    return ring.pop()


def actor(rank, world, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    ring = [torch.randn(4) for _ in range(3 if rank == 2 else 10)]
    policy = torch.nn.Linear(4, 2)
    for step in range(6):
        score = policy(native_sample(ring)).sum()
        value = score.detach().clone()
        dist.all_reduce(value)
        if rank == 0:
            print("step", step, "value", round(value.item(), 3), flush=True)


if __name__ == "__main__":
    mp.spawn(actor, args=(4, 29652), nprocs=4)
