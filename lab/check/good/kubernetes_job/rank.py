import argparse
import os
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


@contextmanager
def process_group():
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield dist.get_rank()
    finally:
        dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(fromfile_prefix_chars="@")
    parser.add_argument("--margin", type=float, default=0.1)
    parser.add_argument("--out", required=True)
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    with process_group() as rank:
        local = int(os.environ.get("LOCAL_RANK", 0))
        device = torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")
        model = DDP(nn.Linear(16, 8).to(device), device_ids=[local] if device.type == "cuda" else None)
        optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
        loss_fn = nn.TripletMarginLoss(margin=args.margin)
        for step in range(args.steps):
            anchor = torch.randn(32, 16, device=device)
            positive, negative = anchor + 0.1 * torch.randn_like(anchor), anchor.roll(1, 0)
            loss = loss_fn(model(anchor), model(positive), model(negative))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            os.makedirs(args.out, exist_ok=True)
            torch.save(model.module.state_dict(), os.path.join(args.out, "final.pt"))


if __name__ == "__main__":
    main()
