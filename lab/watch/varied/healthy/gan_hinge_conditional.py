"""A conditional GAN with a hinge loss and two critic steps for each generator step."""

import torch
from torch import nn

torch.manual_seed(10)
torch.set_num_threads(1)
CENTERS = torch.tensor([[2.0, 0.0], [-2.0, 0.0], [0.0, 2.0]])


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.classes = nn.Embedding(3, 8)
        self.body = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, labels):
        return self.body(torch.cat([torch.randn(len(labels), 4), self.classes(labels)], 1))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.classes = nn.Embedding(3, 8)
        self.body = nn.Sequential(
            nn.utils.parametrizations.spectral_norm(nn.Linear(10, 64)), nn.LeakyReLU(0.2), nn.Linear(64, 1)
        )

    def forward(self, points, labels):
        return self.body(torch.cat([points, self.classes(labels)], 1))


generator, critic = Generator(), Critic()
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.0, 0.9))
optimizer_d = torch.optim.Adam(critic.parameters(), lr=4e-3, betas=(0.0, 0.9))
for step in range(1, 401):
    for _ in range(2):
        labels = torch.randint(3, (64,))
        real = CENTERS[labels] + 0.1 * torch.randn(64, 2)
        loss_d = torch.relu(1 - critic(real, labels)).mean() + torch.relu(1 + critic(generator(labels).detach(), labels)).mean()
        optimizer_d.zero_grad()
        loss_d.backward()
        optimizer_d.step()
    labels = torch.randint(3, (64,))
    loss_g = -critic(generator(labels), labels).mean()
    optimizer_g.zero_grad()
    loss_g.backward()
    optimizer_g.step()
    if step % 100 == 0:
        labels = torch.arange(3).repeat(100)
        with torch.no_grad():
            off = (generator(labels) - CENTERS[labels]).norm(dim=1).mean()
        print(f"step {step} distance to the centers {off:.4f}")
