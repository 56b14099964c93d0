import argparse
import math
from pathlib import Path

import torch
from torch import nn

from render import turntable


class Field(nn.Module):
    def __init__(self, frequencies=6, width=64):
        super().__init__()
        self.frequencies = frequencies
        self.net = nn.Sequential(
            nn.Linear(3 + 3 * 2 * frequencies, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4)
        )

    def encode(self, points):
        parts = [points]
        for k in range(self.frequencies):
            parts += [torch.sin(2**k * math.pi * points), torch.cos(2**k * math.pi * points)]
        return torch.cat(parts, dim=-1)

    def forward(self, points):
        out = self.net(self.encode(points))
        return torch.sigmoid(out[..., :3]), torch.relu(out[..., 3])


def march(field, origins, directions, samples=24):
    depths = torch.linspace(0.5, 2.5, samples)
    points = origins[:, None] + directions[:, None] * depths[None, :, None]
    color, sigma = field(points)
    alpha = 1 - torch.exp(-sigma * (depths[1] - depths[0]))
    passing = torch.cumprod(torch.cat([torch.ones(len(alpha), 1), 1 - alpha + 1e-8], 1), 1)[:, :-1]
    return ((alpha * passing)[..., None] * color).sum(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--out", type=Path, default=Path("scene"))
    args = parser.parse_args()
    torch.manual_seed(3)
    args.out.mkdir(exist_ok=True)
    field = Field()
    optimizer = torch.optim.Adam(field.parameters(), lr=5e-4)
    for step in range(args.iterations):
        directions = nn.functional.normalize(torch.randn(256, 3), dim=-1)
        target = (directions + 1) / 2
        loss = (march(field, torch.zeros(256, 3), directions) - target).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"{step} psnr {-10 * math.log10(loss.item()):.2f}")
    torch.save(field.state_dict(), args.out / "field.pt")
    turntable(field, march, args.out / "orbit.mp4")


if __name__ == "__main__":
    main()
