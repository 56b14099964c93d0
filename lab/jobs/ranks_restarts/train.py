import logging
import os

import torch
import torch.distributed as dist
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)-7s %(message)s")


class Encoder(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.proj = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(self.proj(x))


def export(model, step):
    """Rank 0 keeps a TorchScript-free copy of the weights."""
    weights = {k: v.clone() for k, v in model.module.state_dict().items()}
    torch.save({"step": step, "width": model.width, "weights": weights}, f"step{step}.pt")


def main():
    rank, attempt = int(os.environ["RANK"]), os.environ["TORCHELASTIC_RESTART_COUNT"]
    dist.init_process_group("gloo", init_method=f"file://{os.getcwd()}/rendezvous{attempt}", rank=rank,
                            world_size=int(os.environ["WORLD_SIZE"]))
    logging.info("attempt %s, rank %d", attempt, rank)
    model = nn.parallel.DistributedDataParallel(Encoder())
    opt = torch.optim.Adam(model.parameters())
    for step in range(6):
        x = torch.randn(16, 24)
        loss = (model(x) - x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        logging.info("step %d loss %.4f", step, loss.item())
        if step == 2 and rank == 0:
            export(model, step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
