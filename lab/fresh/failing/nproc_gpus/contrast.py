"""Contrastive training of two encoders over all GPUs of a node."""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class TwoTowers(nn.Module):
    def __init__(self, size=128):
        super().__init__()
        self.image = nn.Sequential(nn.Linear(512, 256), nn.GELU(), nn.Linear(256, size))
        self.text = nn.Sequential(nn.Linear(300, 256), nn.GELU(), nn.Linear(256, size))
        self.scale = nn.Parameter(torch.tensor(2.6))

    def forward(self, images, texts):
        images = F.normalize(self.image(images), dim=-1)
        texts = F.normalize(self.text(texts), dim=-1)
        return self.scale.exp() * images @ texts.t()


def contrastive(logits):
    labels = torch.arange(len(logits), device=logits.device)
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()

    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    device = torch.device(f"cuda:{local_rank}")
    model = DistributedDataParallel(TwoTowers().to(device), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.2)
    for step in range(args.steps):
        images = torch.randn(args.batch, 512, device=device)
        loss = contrastive(model(images, images[:, :300]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 100 == 0:
            print(f"{step}/{args.steps} on {world}: {loss.item():.4f}", flush=True)
    if rank == 0:
        torch.save(model.module.state_dict(), os.path.join(args.out, "towers.pt"))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
