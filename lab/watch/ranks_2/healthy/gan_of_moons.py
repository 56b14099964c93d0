"""A generator and a discriminator on two ranks, each wrapped for its own reduction of gradients."""

import math

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()


def moons(count):
    angle = math.pi * torch.rand(count)
    upper = torch.rand(count) < 0.5
    x = torch.where(upper, angle.cos(), 1 - angle.cos())
    y = torch.where(upper, angle.sin(), 0.5 - angle.sin())
    return torch.stack([x, y], 1) + 0.05 * torch.randn(count, 2)


torch.manual_seed(31)
generator = nn.Sequential(
    nn.Linear(8, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 2)
)
discriminator = nn.Sequential(
    nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1)
)
generate = DistributedDataParallel(generator)
discriminate = DistributedDataParallel(discriminator)
generator_optimizer = torch.optim.Adam(generate.parameters(), lr=1e-3, betas=(0.5, 0.999))
discriminator_optimizer = torch.optim.Adam(discriminate.parameters(), lr=1e-3, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
torch.manual_seed(900 + rank)
for step in range(150):
    real = moons(64)
    fake = generate(torch.randn(64, 8))
    scores = discriminate(torch.cat([real, fake.detach()]))
    wanted = torch.cat([torch.ones(64, 1), torch.zeros(64, 1)])
    discriminator_loss = criterion(scores, wanted)
    discriminator_optimizer.zero_grad()
    discriminator_loss.backward()
    discriminator_optimizer.step()
    discriminator.requires_grad_(False)
    generator_loss = criterion(discriminator(fake), torch.ones(64, 1))
    generator_optimizer.zero_grad()
    generator_loss.backward()
    generator_optimizer.step()
    discriminator.requires_grad_(True)
    if step % 30 == 29 and rank == 0:
        with torch.no_grad():
            distance = torch.cdist(generator(torch.randn(200, 8)), moons(500)).min(1).values.mean()
        print(f"step {step} d {discriminator_loss.item():.3f} distance {distance.item():.3f}")
dist.destroy_process_group()
