import argparse

import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--swa_lr", type=float, default=0.01)
    parser.add_argument("--steps", type=int, default=50)
    args = parser.parse_args()
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    model.load_state_dict(torch.load(args.checkpoint)["model"])
    averaged = AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scheduler = SWALR(optimizer, swa_lr=args.swa_lr)
    for _ in range(args.steps):
        x = torch.randn(64, 8)
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True).sin())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        averaged.update_parameters(model)
        scheduler.step()
    torch.save(averaged.module.state_dict(), "averaged.pt")


if __name__ == "__main__":
    main()
