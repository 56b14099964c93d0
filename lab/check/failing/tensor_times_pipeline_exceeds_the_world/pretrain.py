"""Sets up the groups of a three-dimensional parallel run and checks them with a collective."""

import argparse
import os

import torch
import torch.distributed as dist

from parallel import build_groups


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tensor-parallel", type=int, default=1)
    parser.add_argument("--pipeline-parallel", type=int, default=1)
    parser.add_argument("--hidden", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=100)
    return parser.parse_args()


def column_slice(hidden, group):
    return torch.nn.Linear(hidden, 4 * hidden // dist.get_world_size(group), bias=False)


def main():
    args = parse_args()
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    groups = build_groups(args.tensor_parallel, args.pipeline_parallel)
    layer = column_slice(args.hidden, groups.tensor).cuda()
    optimizer = torch.optim.AdamW(layer.parameters(), lr=1e-4)
    for step in range(args.steps):
        x = torch.randn(8, args.hidden, device="cuda")
        loss = layer(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        for parameter in layer.parameters():
            dist.all_reduce(parameter.grad, group=groups.data)
        optimizer.step()
    if dist.get_rank() == 0:
        print("last loss", loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
