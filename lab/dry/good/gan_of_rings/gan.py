import argparse
import math

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=2000)
parser.add_argument("--noise", type=int, default=8)
opt = parser.parse_args()
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def weights_init(module):
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, 0.0, 0.1)
        nn.init.zeros_(module.bias)


def ring(n):
    angle = 2 * math.pi * torch.rand(n, device=device)
    return torch.stack([angle.cos(), angle.sin()], dim=1) + 0.02 * torch.randn(n, 2, device=device)


G = nn.Sequential(nn.Linear(opt.noise, 64), nn.LeakyReLU(0.2), nn.Linear(64, 2)).to(device)
D = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1)).to(device)
G.apply(weights_init)
D.apply(weights_init)
criterion = nn.BCEWithLogitsLoss()
optimizer_d = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizer_g = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
fixed = torch.randn(16, opt.noise, device=device)
for step in range(opt.steps):
    D.zero_grad()
    real = D(ring(128))
    loss_real = criterion(real, torch.ones_like(real))
    loss_real.backward()
    fake = G(torch.randn(128, opt.noise, device=device))
    said = D(fake.detach())
    loss_fake = criterion(said, torch.zeros_like(said))
    loss_fake.backward()
    optimizer_d.step()
    G.zero_grad()
    said = D(fake)
    loss_g = criterion(said, torch.ones_like(said))
    loss_g.backward()
    optimizer_g.step()
    if step % 20 == 0:
        print(f"[{step}] D {(loss_real + loss_fake).item():.3f} G {loss_g.item():.3f}")
        with torch.no_grad():
            torch.save(G(fixed).cpu(), "samples.pt")
torch.save(G.state_dict(), "generator.pth")
