import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Waves(Dataset):
    def __len__(self):
        return 500

    def __getitem__(self, index):
        random = torch.Generator().manual_seed(index)
        frequency = torch.rand(1, generator=random) * 5
        return torch.sin(torch.linspace(0, 6, 64) * frequency), frequency


def save(path, model, optimizer, epoch):
    state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
    torch.save(state, path + ".tmp")
    os.replace(path + ".tmp", path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", default="runs")
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    device = torch.device(f"cuda:{local_rank}")
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
    model = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(model), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    first, path = 0, os.path.join(args.output, "last.pt")
    if dist.get_rank() == 0:
        os.makedirs(args.output, exist_ok=True)
    if os.path.exists(path):
        state = torch.load(path, map_location=device)
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["epoch"] + 1
    sampler = DistributedSampler(Waves())
    loader = DataLoader(Waves(), batch_size=25, sampler=sampler, num_workers=2)
    for epoch in range(first, args.epochs):
        sampler.set_epoch(epoch)
        for wave, frequency in loader:
            loss = nn.functional.mse_loss(model(wave.to(device)), frequency.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, op=dist.ReduceOp.SUM)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} loss {mean.item() / dist.get_world_size():.4f}", flush=True)
            save(path, model, optimizer, epoch)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
