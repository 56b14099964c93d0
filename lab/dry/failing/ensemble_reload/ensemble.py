"""Deep ensemble for a noisy function, with the calibration of its intervals."""
import argparse
import math
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from nets import Ensemble, Member


def data(count, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(count, 4, generator=g) * 4 - 2
    noise = torch.randn(count, generator=g) * (0.05 + 0.2 * x[:, 1].abs())
    return TensorDataset(x, torch.sin(2 * x[:, 0]) + 0.3 * x[:, 2] * x[:, 3] + noise)


def train(member, loader, epochs):
    optimizer = torch.optim.Adam(member.parameters(), 1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for _ in range(epochs):
        for x, y in loader:
            mean, log_var = member(x)
            loss = nn.functional.gaussian_nll_loss(mean, y, log_var.exp())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
    return loss.item()


def coverage(mean, variance, y, quantile=1.96):
    return ((y - mean).abs() < quantile * variance.sqrt()).float().mean().item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--members", type=int, default=5)
    p.add_argument("--epochs", type=int, default=20)
    p.add_argument("--work", default="members")
    args = p.parse_args()
    os.makedirs(args.work, exist_ok=True)
    loader = DataLoader(data(1000, 0), 64, shuffle=True)
    paths = []
    for seed in range(args.members):
        torch.manual_seed(seed)
        member = Member(4, seed)
        loss = train(member, loader, args.epochs)
        paths.append(os.path.join(args.work, f"member{seed}.pt"))
        torch.save(member.state_dict(), paths[-1])
        print(f"member {seed}: {loss:.3f}", flush=True)
    x, y = data(500, 99).tensors
    with torch.no_grad():
        mean, variance = Ensemble.from_files(paths, 4)(x)
    print("rmse", math.sqrt(nn.functional.mse_loss(mean, y).item()), "coverage", coverage(mean, variance, y))


if __name__ == "__main__":
    main()
