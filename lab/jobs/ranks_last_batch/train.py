"""Data parallel by hand: average a feature map over the ranks every step."""
import logging

import torch
import torch.distributed as dist

N_SAMPLES = 100
BATCH = 16


def batches(rank, world):
    data = torch.randn(N_SAMPLES, 8, generator=torch.Generator().manual_seed(0))
    own = data[: 64] if rank == 0 else data[64:]      # 64 samples here, 36 there
    for start in range(0, len(own), BATCH):
        yield own[start : start + BATCH]


def center(batch, world):
    """Subtract the mean over all ranks, sample by sample."""
    total = batch.clone()
    dist.all_reduce(total)
    return batch - total / world


def train(rank, world, log):
    net = torch.nn.Linear(8, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    for step, batch in enumerate(batches(rank, world)):
        out = net(center(batch, world))
        loss = (out**2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        log.info("step %d, batch %s, loss %.4f", step, tuple(batch.shape), loss.item())


if __name__ == "__main__":
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s rank{rank} %(message)s")
    train(rank, dist.get_world_size(), logging.getLogger())
    dist.destroy_process_group()
