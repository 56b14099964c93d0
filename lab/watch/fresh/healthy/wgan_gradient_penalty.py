"""A Wasserstein GAN with gradient penalty draws eight heaps of points: the critic's loss is negative, the generator's wanders.

Should reach: distance (sliced Wasserstein) below 0.35; the generator begins at about 0.9.
"""

import math

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(14)


def heaps(n):
    angle = torch.randint(8, (n,)) * (2 * math.pi / 8)
    return torch.stack([angle.cos(), angle.sin()], 1) * 1.5 + 0.1 * torch.randn(n, 2)


def mlp(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, outputs))


def penalty(critic, real, fake):
    share = torch.rand(len(real), 1)
    between = (share * real + (1 - share) * fake).requires_grad_(True)
    (gradient,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return ((gradient.norm(dim=1) - 1) ** 2).mean()


def sliced(a, b):
    angles = torch.linspace(0, math.pi, 32)
    axes = torch.stack([angles.cos(), angles.sin()])
    return ((a @ axes).sort(0).values - (b @ axes).sort(0).values).abs().mean().item()


generator, critic = mlp(8, 2), mlp(2, 1)
opt_g = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.0, 0.9))
opt_c = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.0, 0.9))
decay_g = torch.optim.lr_scheduler.LinearLR(opt_g, 1.0, 0.1, total_iters=500)
reference = heaps(3000)

for iteration in range(1, 501):
    for _ in range(3):
        real = heaps(64)
        with torch.no_grad():
            fake = generator(torch.randn(64, 8))
        critic_loss = critic(fake).mean() - critic(real).mean() + 5 * penalty(critic, real, fake)
        opt_c.zero_grad()
        critic_loss.backward()
        opt_c.step()
    generator_loss = -critic(generator(torch.randn(64, 8))).mean()
    opt_g.zero_grad()
    generator_loss.backward()
    opt_g.step()
    decay_g.step()
    if iteration % 50 == 0 or iteration == 1:
        with torch.no_grad():
            distance = sliced(generator(torch.randn(3000, 8)), reference)
        print(f"{iteration}: critic {critic_loss.item():.3f} generator {generator_loss.item():.3f} distance {distance:.4f}")
