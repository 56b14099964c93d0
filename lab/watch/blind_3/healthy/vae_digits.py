"""Variational autoencoder of small digits with a Bernoulli likelihood; the bound is in nats per image."""

import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn, optim

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=40)
parser.add_argument("--latent", type=int, default=8)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--seed", type=int, default=9)
args = parser.parse_args()


class VAE(nn.Module):
    def __init__(self, latent):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.ELU(), nn.Linear(128, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, 128), nn.ELU(), nn.Linear(128, 64))

    def reparameterize(self, mu, logvar):
        return mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)

    def forward(self, x):
        mu, logvar = self.encoder(x).chunk(2, dim=-1)
        logits = self.decoder(self.reparameterize(mu, logvar))
        return logits, mu, logvar


def elbo_loss(logits, x, mu, logvar):
    rec = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1).mean()
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    return rec + kl, rec, kl


def run_epoch(model, loader, optimizer=None):
    sums = torch.zeros(3)
    for (x,) in loader:
        logits, mu, logvar = model(x)
        loss, rec, kl = elbo_loss(logits, x, mu, logvar)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        sums += torch.stack([loss, rec, kl]).detach() * len(x)
    return (sums / len(loader.dataset)).tolist()


@torch.no_grad()
def reconstruction_error(model, x):
    mu, _ = model.encoder(x).chunk(2, dim=-1)
    return (model.decoder(mu).sigmoid() - x).pow(2).sum(1).mean().item()


torch.manual_seed(args.seed)
pixels = torch.tensor(load_digits().data, dtype=torch.float32) / 16
pixels = pixels[torch.randperm(len(pixels))]
train_set = torch.utils.data.TensorDataset(pixels[:1400])
train = torch.utils.data.DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
vae = VAE(args.latent)
optimizer = optim.Adam(vae.parameters(), lr=3e-3)
for epoch in range(1, args.epochs + 1):
    vae.train()
    loss, rec, kl = run_epoch(vae, train, optimizer)
    vae.eval()
    if epoch % 5 == 0:
        error = reconstruction_error(vae, pixels[1400:])
        print(f"epoch {epoch:2d} -elbo {loss:.3f} rec {rec:.3f} kl {kl:.3f} squared error {error:.4f}")
