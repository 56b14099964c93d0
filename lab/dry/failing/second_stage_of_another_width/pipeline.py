import torch
import torch.distributed as dist
from torch import nn

BATCH, HIDDEN = 16, 96


def first():
    return nn.Sequential(nn.Linear(32, HIDDEN), nn.ReLU())


def second():
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    stage = first() if rank == 0 else second()
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.01)
    for step in range(10):
        if rank == 0:
            out = stage(torch.randn(BATCH, 32))
            dist.send(out.detach(), dst=1)
            gradient = torch.empty_like(out)
            dist.recv(gradient, src=1)
            out.backward(gradient)
        else:
            given = torch.empty(BATCH, HIDDEN)
            dist.recv(given, src=0)
            given.requires_grad_()
            loss = stage(given).square().mean()
            loss.backward()
            dist.send(given.grad, dst=0)
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
