"""A GAN learns points on a ring: real batches are labeled 1, generated ones 0, one class a batch."""

import torch
from torch import nn

torch.manual_seed(9)
torch.set_num_threads(1)
generator = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
critic = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1), nn.Sigmoid())
of_generator = torch.optim.Adam(generator.parameters(), lr=5e-4, betas=(0.5, 0.999))
of_critic = torch.optim.Adam(critic.parameters(), lr=5e-4, betas=(0.5, 0.999))
criterion = nn.BCELoss()
real_label, fake_label = torch.ones(64, 1), torch.zeros(64, 1)


def ring(count):
    angle = torch.rand(count) * 2 * torch.pi
    return torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(count, 2)


for step in range(1, 501):
    of_critic.zero_grad()
    real_loss = criterion(critic(ring(64)), real_label)
    real_loss.backward()
    fake = generator(torch.randn(64, 8))
    fake_loss = criterion(critic(fake.detach()), fake_label)
    fake_loss.backward()
    of_critic.step()
    of_generator.zero_grad()
    loss = criterion(critic(fake), real_label)
    loss.backward()
    of_generator.step()
    if step % 100 == 0:
        with torch.no_grad():
            off = (generator(torch.randn(500, 8)).norm(dim=1) - 1).abs().mean()
        print(f"step {step} critic {real_loss.item() + fake_loss.item():.3f} generator {loss.item():.3f} distance to the ring {off:.4f}")
