"""A denoising model of points on three rings, trained with Accelerate."""

import math

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 320
STEPS = 120
LEVELS = 50


class Denoiser(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.level = nn.Embedding(LEVELS, width)
        self.enter = nn.Linear(2, width)
        self.middle = nn.ModuleList([nn.Linear(width, width) for _ in range(3)])
        self.leave = nn.Linear(width, 2)

    def forward(self, points, level):
        hidden = self.enter(points) + self.level(level)
        for layer in self.middle:
            hidden = hidden + layer(nn.functional.silu(hidden))
        return self.leave(nn.functional.silu(hidden))


def rings(count, generator):
    angle = 2 * math.pi * torch.rand(count, generator=generator)
    radius = torch.tensor([0.4, 1.0, 1.6])[torch.randint(3, (count,), generator=generator)]
    points = torch.stack([radius * angle.cos(), radius * angle.sin()], 1)
    return points + 0.03 * torch.randn(count, 2, generator=generator)


def warmup_then_cosine(total):
    def factor(step):
        if step < 0.05 * total:
            return step / (0.05 * total)
        return 0.5 * (1 + math.cos(math.pi * min(step / total, 1.0)))

    return factor


kept = torch.linspace(0.995, 0.02, LEVELS)


def noised(points, level, noise):
    share = kept[level][:, None]
    return share.sqrt() * points + (1 - share).sqrt() * noise


accelerator = Accelerator(cpu=True)
set_seed(SEED)
generator = torch.Generator().manual_seed(SEED)
loader = DataLoader(
    TensorDataset(rings(6000, generator)), batch_size=32, shuffle=True, drop_last=True
)
test = rings(2000, generator)
test_level = torch.randint(LEVELS, (2000,), generator=generator)
test_noise = torch.randn(2000, 2, generator=generator)

model = Denoiser()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer, warmup_then_cosine(STEPS * accelerator.num_processes)
)
model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)

step = 0
while step < STEPS:
    for (points,) in loader:
        level = torch.randint(LEVELS, (len(points),))
        noise = torch.randn_like(points)
        loss = nn.functional.mse_loss(model(noised(points, level, noise), level), noise)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        step += 1
        if step % 40 == 0:
            mean = accelerator.gather(loss.detach()[None]).mean().item()
            accelerator.print(
                f"step {step}  loss {mean:.4f}  rate {scheduler.get_last_lr()[0]:.2e}"
            )
        if step == STEPS:
            break

model.eval()
with torch.no_grad():
    error = nn.functional.mse_loss(
        model(noised(test, test_level, test_noise), test_level), test_noise
    )
accelerator.print(f"test error {error.item():.4f}")
accelerator.end_training()
