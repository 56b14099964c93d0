import os
import torch, torch.distributed as dist
from torch import nn

DATA_DIR = os.environ.get("DATA_DIR", "./data")

def load_shard(rank):
    path = os.path.join(DATA_DIR, "train-%05d-of-00002.pt" % rank)
    print("[rank %d] loading %s" % (rank, path), flush=True)
    blob = torch.load(path)
    return blob["x"], blob["y"]

def prepare():
    # done once, by the machine that exports the table
    os.makedirs(DATA_DIR, exist_ok=True)
    g = torch.Generator().manual_seed(1)
    x = torch.randn(256, 12, generator=g)
    torch.save({"x": x, "y": x.sum(1, keepdim=True)}, os.path.join(DATA_DIR, "train-00000-of-00002.pt"))

def main():
    dist.init_process_group(backend="gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        prepare()
    dist.barrier()
    x, y = load_shard(rank)
    net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 1))
    for p in net.parameters():
        dist.broadcast(p.data, src=0)
    opt = torch.optim.Adam(net.parameters())
    for step in range(20):
        loss = nn.functional.mse_loss(net(x), y)
        opt.zero_grad(); loss.backward()
        for p in net.parameters():
            dist.all_reduce(p.grad)
            p.grad /= world
        opt.step()
        if step % 5 == 0:
            print("[rank %d] step %d loss %.3f" % (rank, step, loss.item()), flush=True)

main()
