"""A Wasserstein GAN with a gradient penalty that learns eight hills in a circle."""
import math

import torch
from torch import nn

SEED = 6
ROUNDS, CRITIC_STEPS, BATCH, PENALTY = 350, 3, 128, 2.0
torch.manual_seed(SEED)


def hills(count):
    angle = torch.randint(8, (count,)) * math.pi / 4
    return torch.stack([angle.cos(), angle.sin()], 1) * 2 + torch.randn(count, 2) * 0.1


def perceptron(inside, outside, width=64):
    return nn.Sequential(
        nn.Linear(inside, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2), nn.Linear(width, outside)
    )


def steepness(critic, real, made):
    share = torch.rand(len(real), 1)
    between = (share * real + (1 - share) * made).requires_grad_()
    gradient, = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return (gradient.norm(dim=1) - 1).square().mean()


def energy_distance(a, b):
    return 2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()


generator, critic = perceptron(4, 2), perceptron(2, 1)
generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.9))
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.9))
for step in range(ROUNDS):
    for _ in range(CRITIC_STEPS):
        real, made = hills(BATCH), generator(torch.randn(BATCH, 4)).detach()
        critic_loss = critic(made).mean() - critic(real).mean() + PENALTY * steepness(critic, real, made)
        critic_optimizer.zero_grad()
        critic_loss.backward()
        critic_optimizer.step()
    generator_loss = -critic(generator(torch.randn(BATCH, 4))).mean()
    generator_optimizer.zero_grad()
    generator_loss.backward()
    generator_optimizer.step()
    if step % 50 == 49:
        with torch.no_grad():
            distance = energy_distance(generator(torch.randn(1500, 4)), hills(1500))
        print(f"round {step + 1}: critic {critic_loss.item():.3f}, generator {generator_loss.item():.3f}, energy distance {distance:.4f}")
