"""A variational autoencoder of curves with one or two bumps."""

import torch
from torch import nn

torch.manual_seed(12)
axis = torch.linspace(0, 1, 32)
centers = torch.rand(1500, 2)
height = torch.rand(1500, 2, 1)
curves = (height * torch.exp(-((axis - centers.unsqueeze(2)) ** 2) / 0.004)).sum(1).clamp(0, 1)


class VAE(nn.Module):
    def __init__(self, latent=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, 64), nn.ReLU(), nn.Linear(64, 32))

    def forward(self, x):
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        latent = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        return torch.sigmoid(self.decoder(latent)), mean, log_variance


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    total = 0.0
    for part in torch.randperm(1500).split(50):
        x = curves[part]
        restored, mean, log_variance = model(x)
        reconstruction = nn.functional.binary_cross_entropy(restored, x, reduction="none").sum(1).mean()
        divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(1).mean()
        loss = reconstruction + 0.5 * divergence
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(part)
    print(f"epoch {epoch} elbo {total / 1500:.3f}")
