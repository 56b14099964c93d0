"""VAE of small stroke images with KL warm-up; reconstructs unseen images."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(23)


def strokes(n, side=14):
    t = torch.linspace(0, 1, 20)
    start, end = torch.rand(n, 2, 1) * (side - 1), torch.rand(n, 2, 1) * (side - 1)
    path = start + (end - start) * t
    grid = torch.arange(side).float()
    dy = (grid[None, :, None, None] - path[:, None, None, 0]) ** 2
    dx = (grid[None, None, :, None] - path[:, None, None, 1]) ** 2
    return torch.exp(-(dy + dx).min(-1).values / 1.2).flatten(1)


class VAE(nn.Module):
    def __init__(self, latent=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(196, 128), nn.ReLU())
        self.mu, self.logvar = nn.Linear(128, latent), nn.Linear(128, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 128), nn.ReLU(), nn.Linear(128, 196))

    def forward(self, x):
        h = self.encoder(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp() if self.training else mu
        return self.decoder(z), mu, logvar


train, test = strokes(3000), strokes(500)
vae = VAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=2e-3)
EPOCHS, WARMUP = 30, 10
for epoch in range(EPOCHS):
    vae.train()
    beta = min(1.0, epoch / WARMUP) * 0.5
    shown = 0.0
    for batch in train[torch.randperm(len(train))].split(100):
        logits, mu, logvar = vae(batch)
        rec = F.binary_cross_entropy_with_logits(logits, batch, reduction="sum") / len(batch)
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum() / len(batch)
        loss = rec + beta * kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shown += loss.item() / 30
    vae.eval()
    with torch.no_grad():
        error = (torch.sigmoid(vae(test)[0]) - test).pow(2).mean().item()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1} elbo {-shown:.2f} kl {kl.item():.2f} val_mse {error:.5f}")
