import argparse
import time
import torch
import torch.distributed as dist
from torch import nn


def say(*words):
    print(time.strftime("%Y-%m-%d %H:%M:%S"), *words, flush=True)


def build(classes):
    return nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, classes))


def sync(model):
    for tensor in model.state_dict().values():
        dist.broadcast(tensor, src=0)


parser = argparse.ArgumentParser()
parser.add_argument("--classes", type=int, default=10)
parser.add_argument("--resume", default="base.pt")
args = parser.parse_args()

dist.init_process_group("gloo")
rank = dist.get_rank()
model = build(args.classes)
if rank == 0:
    torch.save(build(7).state_dict(), args.resume)          # what the other team trained
    say("resuming from", args.resume)
    model.load_state_dict(torch.load(args.resume))
sync(model)
say("rank", rank, "has the weights")
x, y = torch.randn(32, 12), torch.randint(args.classes, (32,))
nn.functional.cross_entropy(model(x), y).backward()
