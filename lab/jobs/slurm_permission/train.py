import logging
import pathlib
import socket

import torch
import torch.distributed as dist

CHECKPOINTS = pathlib.Path("checkpoints/resnet-small")
log = logging.getLogger()


def save(model, step):
    CHECKPOINTS.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), CHECKPOINTS / f"{step}.pt")


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s {socket.gethostname()} %(levelname)s %(message)s")
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 3))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(1, 9):
        loss = torch.nn.functional.cross_entropy(net(torch.randn(8, 16)), torch.randint(3, (8,)))
        opt.zero_grad()
        loss.backward()
        opt.step()
        log.info("step %d/8 loss %.3f", step, loss.item())
        if step % 4 == 0 and rank == 0:
            save(net, step)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
