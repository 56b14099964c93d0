import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def get_parser():
    parser = argparse.ArgumentParser("ddp training")
    group = parser.add_argument_group("data")
    group.add_argument("--rows", type=int, default=65536)
    group.add_argument("--batch-size", type=int, default=32)
    group = parser.add_argument_group("run")
    group.add_argument("--epochs", type=int, default=1)
    group.add_argument("--output-dir", type=str, required=True)
    group.add_argument("--seed", type=int, default=42)
    return parser


def main():
    args = get_parser().parse_args()
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    torch.manual_seed(args.seed)
    x = torch.randn(args.rows, 32)
    dataset = TensorDataset(x, (x.sum(1) > 0).long())
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2)).cuda(local)
    model = DistributedDataParallel(model, device_ids=[local])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs.cuda(local)), labels.cuda(local))
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print(f"epoch {epoch} {loss.item():.4f}")
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), os.path.join(args.output_dir, "model.pt"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
