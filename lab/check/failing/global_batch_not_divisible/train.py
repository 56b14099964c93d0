import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def accumulation_steps(global_batch, micro_batch, world_size):
    per_step = micro_batch * world_size
    assert global_batch % per_step == 0, f"{global_batch} is not a multiple of {per_step}"
    return global_batch // per_step


class Model(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.LayerNorm(width)
        )

    def forward(self, x):
        return x + self.layers(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--global-batch", type=int, default=512)
    parser.add_argument("--micro-batch", type=int, default=4)
    parser.add_argument("--updates", type=int, default=1000)
    args = parser.parse_args()
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    world_size = int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(local_rank)
    accumulate = accumulation_steps(args.global_batch, args.micro_batch, world_size)
    model = DistributedDataParallel(Model().cuda(), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for update in range(args.updates):
        optimizer.zero_grad()
        for _ in range(accumulate):
            x = torch.randn(args.micro_batch, 512, device="cuda")
            loss = (model(x) - x.roll(1, 1)).pow(2).mean() / accumulate
            loss.backward()
        optimizer.step()
        if update % 100 == 0 and local_rank == 0:
            print(update, loss.item() * accumulate)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
