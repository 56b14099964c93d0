"""Flow matching from noise to a two-armed spiral with discrete times; the loss stays near its noise floor from the start."""

from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class Config:
    T: int = 50
    batch: int = 256
    steps: int = 2500
    lr: float = 2e-3
    seed: int = 4


def spiral(n, generator):
    u = torch.rand(n, generator=generator)
    arm = torch.randint(0, 2, (n,), generator=generator) * 3.14159
    angle = 1.5 + 6 * u
    x = torch.stack([(angle * 0.3) * torch.cos(angle + arm), (angle * 0.3) * torch.sin(angle + arm)], 1)
    return x + 0.03 * torch.randn(n, 2, generator=generator)


class Batches:
    def __init__(self, cfg):
        self.cfg = cfg
        self.generator = torch.Generator().manual_seed(cfg.seed)

    def sample(self):
        g = self.generator
        x1 = spiral(self.cfg.batch, g)
        x0 = torch.randn(self.cfg.batch, 2, generator=g)
        t = torch.randint(0, self.cfg.T, (self.cfg.batch,), generator=g)
        return x0, x1, t


class Velocity(nn.Module):
    def __init__(self, T, width=96):
        super().__init__()
        self.T = T
        self.net = nn.Sequential(
            nn.Linear(2 + 6, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2)
        )

    def forward(self, x, t):
        s = (t / self.T)[:, None]
        freqs = 3.14159 * torch.tensor([1.0, 2.0, 4.0])
        return self.net(torch.cat([x, (s * freqs).sin(), (s * freqs).cos()], dim=1))


@torch.no_grad()
def generate(model, cfg, n):
    x = torch.randn(n, 2)
    for i in range(cfg.T):
        x = x + model(x, torch.full((n,), i)) / cfg.T
    return x


def chamfer(a, b):
    d = torch.cdist(a, b)
    return (d.min(0).values.mean() + d.min(1).values.mean()).item()


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    batches, model = Batches(cfg), Velocity(cfg.T)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, cfg.steps)
    real = spiral(1000, torch.Generator().manual_seed(99))
    for step in range(1, cfg.steps + 1):
        x0, x1, t = batches.sample()
        s = (t / cfg.T)[:, None]
        xt = (1 - s) * x0 + s * x1
        target = x1 - x0
        loss = ((model(xt, t) - target) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step % 500 == 0:
            print(f"step {step}: loss {loss.item():.4f} chamfer {chamfer(generate(model, cfg, 1000), real):.4f}")


if __name__ == "__main__":
    main()
