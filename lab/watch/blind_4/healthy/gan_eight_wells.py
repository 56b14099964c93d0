"""A small GAN on eight wells in the plane; the two losses swing around each other."""

import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)


def wells(count):
    angle = 2 * math.pi * torch.randint(0, 8, (count,)) / 8
    return torch.stack([angle.cos(), angle.sin()], 1) * 1.5 + 0.1 * torch.randn(count, 2)


def energy_distance(a, b):
    return (2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


generator = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
critic = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.99))
d_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.99))
BATCH = 128
real_label, fake_label = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)

for step in range(1, 1501):
    real = wells(BATCH)
    fake = generator(torch.randn(BATCH, 8))

    d_loss = F.binary_cross_entropy_with_logits(critic(real), 0.9 * real_label)
    d_loss = d_loss + F.binary_cross_entropy_with_logits(critic(fake.detach()), fake_label)
    d_optimizer.zero_grad()
    d_loss.backward()
    d_optimizer.step()

    g_loss = F.binary_cross_entropy_with_logits(critic(fake), real_label)
    g_optimizer.zero_grad()
    g_loss.backward()
    g_optimizer.step()

    if step % 250 == 0:
        print(f"step {step} d {d_loss.item():.3f} g {g_loss.item():.3f}")

with torch.no_grad():
    sample = generator(torch.randn(1000, 8))
print(f"energy distance {energy_distance(sample, wells(1000)):.4f}")
