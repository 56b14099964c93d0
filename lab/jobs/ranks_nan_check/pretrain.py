import logging
import math
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Regressor(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.inp = nn.Linear(d, 64)
        self.out = nn.Linear(64, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.inp(x))).squeeze(-1)


class Trainer:
    def __init__(self, rank):
        self.rank = rank
        self.log = logging.getLogger(f"trainer.{rank}")
        self.model = DDP(Regressor())
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=3e-3)

    def batch(self, step):
        g = torch.Generator().manual_seed(1000 * self.rank + step)
        x = torch.rand(32, 16, generator=g)
        price = x.sum(1) - 8.5 if self.rank == 3 and step == 4 else x.sum(1)
        return x, torch.log(price)      # a negative price gives nan

    def check(self, loss, step):
        if not math.isfinite(loss):
            raise FloatingPointError(f"loss is {loss} at step {step} on rank {self.rank}, stopping")

    def fit(self, steps=10):
        for step in range(steps):
            x, y = self.batch(step)
            loss = nn.functional.mse_loss(self.model(x), y)
            self.check(loss.item(), step)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.log.info("step=%d loss=%.4f", step, loss.item())


if __name__ == "__main__":
    logging.basicConfig(format="%(asctime)s,%(name)s,%(levelname)s,%(message)s", level=logging.INFO)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    Trainer(dist.get_rank()).fit()
    dist.destroy_process_group()
