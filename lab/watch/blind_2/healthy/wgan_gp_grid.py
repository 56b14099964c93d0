"""A Wasserstein GAN with gradient penalty on nine Gaussians: losses change sign and drift."""

import torch
from torch import nn

torch.manual_seed(14)
LATENT, BATCH, N_CRITIC, LAMBDA = 4, 128, 3, 1.0
centers = torch.cartesian_prod(torch.tensor([-1.0, 0.0, 1.0]), torch.tensor([-1.0, 0.0, 1.0]))


def real_batch(n):
    return centers[torch.randint(0, 9, (n,))] + 0.06 * torch.randn(n, 2)


def mlp(inputs, outputs, width=96):
    return nn.Sequential(
        nn.Linear(inputs, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2), nn.Linear(width, outputs)
    )


def gradient_penalty(critic, real, fake):
    eps = torch.rand(len(real), 1)
    mixed = (eps * real + (1 - eps) * fake).requires_grad_(True)
    grads = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)[0]
    return ((grads.norm(2, dim=1) - 1) ** 2).mean()


def distance(a, b):
    d = torch.cdist(a, b)
    return (2 * d.mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


generator, critic = mlp(LATENT, 2), mlp(2, 1)
opt_g = torch.optim.Adam(generator.parameters(), lr=5e-4, betas=(0.5, 0.9))
opt_c = torch.optim.Adam(critic.parameters(), lr=5e-4, betas=(0.5, 0.9))
probe = real_batch(1500)
for it in range(1, 801):
    for _ in range(N_CRITIC):
        real = real_batch(BATCH)
        fake = generator(torch.randn(BATCH, LATENT)).detach()
        wasserstein = critic(fake).mean() - critic(real).mean()
        loss_c = wasserstein + LAMBDA * gradient_penalty(critic, real, fake)
        opt_c.zero_grad()
        loss_c.backward()
        opt_c.step()
    loss_g = -critic(generator(torch.randn(BATCH, LATENT))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    if it % 100 == 0:
        with torch.no_grad():
            gap = distance(generator(torch.randn(1500, LATENT)), probe)
        print(f"iter {it} critic {loss_c.item():+.4f} generator {loss_g.item():+.4f} energy_gap {gap:.5f}")
