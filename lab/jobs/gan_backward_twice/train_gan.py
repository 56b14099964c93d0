"""A tiny GAN on 2-d points. The discriminator and the generator share one forward pass."""
import torch
from torch import nn

torch.manual_seed(3)
generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
discriminator = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()


def real_points(n):
    angle = torch.rand(n) * 6.2832
    return torch.stack([angle.cos(), angle.sin()], dim=1)


for epoch in range(5):
    real = real_points(64)
    fake = generator(torch.randn(64, 8))
    fake_score = discriminator(fake)

    loss_d = bce(discriminator(real), torch.ones(64, 1)) + bce(fake_score, torch.zeros(64, 1))
    opt_d.zero_grad()
    loss_d.backward()

    loss_g = bce(fake_score, torch.ones(64, 1))
    opt_g.zero_grad()
    loss_g.backward()
    opt_d.step()
    opt_g.step()
    print(f"[{epoch}/5] loss_d={loss_d.item():.3f} loss_g={loss_g.item():.3f}")
