"""A variational autoencoder on black-and-white digits; the weight of the KL term grows from 0 to 1 in the first epochs.

The total loss rises while the weight grows, the KL term too: that is wanted.
Should reach: val negative ELBO below 21 nats (independent pixels: 24.7).
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(0)
torch.set_num_threads(1)


class VAE(nn.Module):
    def __init__(self, latent=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU())
        self.mean, self.log_variance = nn.Linear(128, latent), nn.Linear(128, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 128), nn.ReLU(), nn.Linear(128, 64))

    def forward(self, x):
        h = self.encoder(x)
        mean, log_variance = self.mean(h), self.log_variance(h)
        z = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        return self.decoder(z), mean, log_variance


def terms(model, x):
    logits, mean, log_variance = model(x)
    reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1).mean()
    divergence = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(1).mean()
    return reconstruction, divergence


images = torch.tensor(load_digits().data, dtype=torch.float32).gt(8).float()
images = images[torch.randperm(len(images))]
train, val = images[:1450], images[1450:]
share = train.mean(0).clamp(1e-4, 1 - 1e-4)
independent = F.binary_cross_entropy(share.expand_as(val), val, reduction="none").sum(1).mean()
print(f"independent pixels: {independent.item():.2f} nats")

model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
epochs, annealing = 30, 10
for epoch in range(epochs):
    beta = min(1.0, epoch / annealing)
    model.train()
    sums = torch.zeros(2)
    for x in train[torch.randperm(len(train))].split(50):
        reconstruction, divergence = terms(model, x)
        loss = reconstruction + beta * divergence
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sums += torch.tensor([reconstruction.item(), divergence.item()]) * len(x) / len(train)
    model.eval()
    with torch.no_grad():
        elbo = sum(terms(model, val)).item()
    print(f"epoch {epoch:2d} beta {beta:.2f} reconstruction {sums[0]:.3f} KL {sums[1]:.3f} val negative ELBO {elbo:.3f}")
