"""Tiny diffusion model; judged at the end with features of a published network."""

import argparse
import os

import torch
from torch import nn

import judge


class Denoiser(nn.Module):
    def __init__(self, channels=32):
        super().__init__()
        self.time = nn.Linear(1, channels)
        self.enter = nn.Conv2d(3, channels, 3, padding=1)
        self.middle = nn.Sequential(nn.SiLU(), nn.Conv2d(channels, channels, 3, padding=1), nn.SiLU())
        self.leave = nn.Conv2d(channels, 3, 3, padding=1)

    def forward(self, x, t):
        hidden = self.enter(x) + self.time(t[:, None])[:, :, None, None]
        return self.leave(self.middle(hidden))


def pictures(count, device):
    base = torch.rand(count, 3, 1, 1, device=device)
    return base.expand(-1, -1, 32, 32) * 2 - 1


@torch.no_grad()
def sample(model, count, steps, device):
    x = torch.randn(count, 3, 32, 32, device=device)
    for step in reversed(range(steps)):
        t = torch.full((count,), step / steps, device=device)
        x = x - model(x, t) / steps
    return x


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--out", default="/outputs/diffusion")
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Denoiser().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
    for step in range(args.steps):
        x = pictures(args.batch, device)
        t = torch.rand(args.batch, device=device)
        noise = torch.randn_like(x)
        mixed = (1 - t)[:, None, None, None] * x + t[:, None, None, None] * noise
        loss = nn.functional.mse_loss(model(mixed, t), noise - x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save(model.state_dict(), os.path.join(args.out, "model.pt"))
    distance = judge.distance(pictures(500, device), sample(model, 500, 50, device))
    print(f"distance {distance:.3f}")


if __name__ == "__main__":
    main()
