"""A GAN of two small networks: points on a crescent; both losses oscillate around log 2."""

import torch
from torch import nn

SEED = 6
torch.manual_seed(SEED)


def crescent(count):
    angle = torch.rand(count, 1) * 3.14
    return torch.cat([angle.cos(), angle.sin()], 1) * 1.5 + 0.1 * torch.randn(count, 2)


def energy_distance(a, b):
    return (2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


generator = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
discriminator = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.99))
d_optimizer = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.99))
criterion = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(128, 1), torch.zeros(128, 1)
for step in range(1, 1501):
    real, fake = crescent(128), generator(torch.randn(128, 8))
    d_loss = criterion(discriminator(real), ones) + criterion(discriminator(fake.detach()), zeros)
    d_optimizer.zero_grad()
    d_loss.backward()
    d_optimizer.step()
    g_loss = criterion(discriminator(fake), ones)
    g_optimizer.zero_grad()
    g_loss.backward()
    g_optimizer.step()
    if step % 150 == 0:
        with torch.no_grad():
            distance = energy_distance(generator(torch.randn(1000, 8)), crescent(1000))
        print(f"step {step} d_loss {d_loss.item():.3f} g_loss {g_loss.item():.3f} energy distance {distance:.4f}")
