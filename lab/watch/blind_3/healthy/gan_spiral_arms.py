"""A small GAN for five spiral arms, non-saturating loss, two time scales, averaged generator for the samples."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(52)
LATENT = 6


def real(n):
    arm = torch.randint(5, (n,)).float()
    r = 0.3 + 1.2 * torch.rand(n)
    angle = 2 * torch.pi * arm / 5 + 0.8 * r
    return torch.stack([r * angle.cos(), r * angle.sin()], 1) + 0.04 * torch.randn(n, 2)


def network(i, o, act):
    return nn.Sequential(nn.Linear(i, 96), act(), nn.Linear(96, 96), act(), nn.Linear(96, o))


G, D = network(LATENT, 2, nn.ReLU), network(2, 1, lambda: nn.LeakyReLU(0.2))
G_avg = copy.deepcopy(G).requires_grad_(False)
opt_g = torch.optim.Adam(G.parameters(), lr=5e-4, betas=(0.5, 0.99))
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.99))


def d_step(batch):
    x = real(batch).requires_grad_(True)
    with torch.no_grad():
        generated = G(torch.randn(batch, LATENT))
    out_real, out_fake = D(x), D(generated)
    loss = F.softplus(-out_real).mean() + F.softplus(out_fake).mean()
    (slope,) = torch.autograd.grad(out_real.sum(), x, create_graph=True)
    penalty = 0.1 * slope.pow(2).sum(1).mean()
    opt_d.zero_grad()
    (loss + penalty).backward()
    opt_d.step()
    return loss.item()


def g_step(batch):
    fake = G(torch.randn(batch, LATENT))
    loss = F.softplus(-D(fake)).mean()
    opt_g.zero_grad()
    loss.backward()
    opt_g.step()
    with torch.no_grad():
        for averaged, current in zip(G_avg.parameters(), G.parameters()):
            averaged.mul_(0.99).add_(current, alpha=0.01)
    return loss.item()


@torch.no_grad()
def distance(n=1500):
    """Energy distance of samples and data."""
    a, b = G_avg(torch.randn(n, LATENT)), real(n)
    return (2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


for it in range(1, 1801):
    loss_d = d_step(128)
    loss_g = g_step(128)
    if it % 300 == 0:
        print(f"it {it} d {loss_d:.3f} g {loss_g:.3f} energy {distance():.5f}")
