"""A Wasserstein GAN with gradient penalty that draws from a mixture of five normals."""

import torch
from torch import nn

torch.manual_seed(13)
centers = torch.tensor([[0.0, 0.0], [2.0, 2.0], [-2.0, 2.0], [2.0, -2.0], [-2.0, -2.0]])


def real(count):
    return centers[torch.randint(5, (count,))] + 0.15 * torch.randn(count, 2)


def mlp(inputs, outputs):
    return nn.Sequential(
        nn.Linear(inputs, 64),
        nn.LeakyReLU(0.2),
        nn.Linear(64, 64),
        nn.LeakyReLU(0.2),
        nn.Linear(64, outputs),
    )


generator, critic = mlp(4, 2), mlp(2, 1)
g_optimizer = torch.optim.Adam(generator.parameters(), lr=3e-4, betas=(0.5, 0.9))
c_optimizer = torch.optim.Adam(critic.parameters(), lr=3e-4, betas=(0.5, 0.9))


def penalty(a, b):
    share = torch.rand(len(a), 1)
    between = (share * a + (1 - share) * b).requires_grad_()
    gradient = torch.autograd.grad(critic(between).sum(), between, create_graph=True)[0]
    return ((gradient.norm(2, 1) - 1) ** 2).mean()


for step in range(250):
    for _ in range(3):
        x, fake = real(64), generator(torch.randn(64, 4)).detach()
        c_loss = critic(fake).mean() - critic(x).mean() + 5 * penalty(x, fake)
        c_optimizer.zero_grad()
        c_loss.backward()
        c_optimizer.step()
    g_loss = -critic(generator(torch.randn(64, 4))).mean()
    g_optimizer.zero_grad()
    g_loss.backward()
    g_optimizer.step()
    if step % 50 == 0:
        print(f"step {step} critic {c_loss.item():.3f} generator {g_loss.item():.3f}")
