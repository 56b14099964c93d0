"""GAN on eight blobs of a ring; both losses oscillate, the number of covered blobs and the distance count."""

import math

import torch
import torch.nn as nn

torch.manual_seed(0)
Z, BATCH, STEPS = 8, 128, 1500
angles = torch.arange(8) * (2 * math.pi / 8)
centers = torch.stack([angles.cos(), angles.sin()], 1) * 2


def real(n):
    return centers[torch.randint(0, 8, (n,))] + 0.08 * torch.randn(n, 2)


G = nn.Sequential(nn.Linear(Z, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
D = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
for step in range(STEPS):
    fake = G(torch.randn(BATCH, Z))
    d_loss = bce(D(real(BATCH)), torch.ones(BATCH, 1)) + bce(D(fake.detach()), torch.zeros(BATCH, 1))
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()

    g_loss = bce(D(fake), torch.ones(BATCH, 1))
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
    if step % 150 == 0 or step == STEPS - 1:
        with torch.no_grad():
            gap = torch.cdist(centers, G(torch.randn(1000, Z))).min(1).values.mean().item()
        print(f"[{step}/{STEPS}] d_loss {d_loss.item():.3f} g_loss {g_loss.item():.3f} gap {gap:.4f}")
