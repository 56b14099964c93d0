"""A GAN on points of two rings, with separate optimizers."""

import math

import torch
from torch import nn

torch.manual_seed(6)


def real(count):
    angle = torch.rand(count) * 2 * math.pi
    radius = 1.0 + torch.randint(2, (count,)) + 0.05 * torch.randn(count)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1)


generator = nn.Sequential(nn.Linear(8, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 2))
discriminator = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()

for step in range(400):
    points = real(64)
    noise = torch.randn(64, 8)
    fake = generator(noise)

    opt_d.zero_grad()
    loss_real = bce(discriminator(points), torch.ones(64, 1))
    loss_fake = bce(discriminator(fake.detach()), torch.zeros(64, 1))
    loss_d = loss_real + loss_fake
    loss_d.backward()
    opt_d.step()

    opt_g.zero_grad()
    loss_g = bce(discriminator(fake), torch.ones(64, 1))
    loss_g.backward()
    opt_g.step()
    if step % 80 == 79:
        with torch.no_grad():
            radius = generator(torch.randn(512, 8)).norm(dim=1)
        print(f"step {step} d {loss_d.item():.3f} g {loss_g.item():.3f} mean radius {radius.mean().item():.3f}")
