import os

import torch
from torch import nn

SEEDS = [11, 23, 37, 41, 53, 61, 71, 83, 97, 101, 113, 127, 131, 149, 151, 163]


def main():
    rank = int(os.environ["SLURM_PROCID"])
    torch.manual_seed(SEEDS[rank])
    model = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(30):
        loss = model(torch.randn(9, 5)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save(model.state_dict(), f"member-{rank}.pt")


if __name__ == "__main__":
    main()
