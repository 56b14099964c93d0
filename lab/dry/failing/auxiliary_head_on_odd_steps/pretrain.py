import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(20, 64), nn.GELU())
        self.main, self.auxiliary = nn.Linear(64, 20), nn.Linear(64, 5)

    def forward(self, x, auxiliary):
        hidden = self.trunk(x)
        loss = (self.main(hidden) - x).square().mean()
        if auxiliary:
            loss = loss + self.auxiliary(hidden).square().mean()
        return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    model = DistributedDataParallel(Encoder())
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(options.steps):
        loss = model(torch.randn(16, 20), auxiliary=step % 2 == 1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
