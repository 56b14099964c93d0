"""A convolutional variational autoencoder of small digits, pixels as Bernoulli; losses are sums over pixels.

Should reach: val negative ELBO below 24.5; independent pixels with their mean brightness give about 27.
"""
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader

torch.set_num_threads(1)
torch.manual_seed(15)
images = torch.tensor(load_digits().images).float().div(16).unsqueeze(1)
images = images[torch.randperm(len(images))]
train, val = images[:1400], images[1400:]
mean = train.mean(0)
flat = F.binary_cross_entropy(mean.clamp(1e-3, 1 - 1e-3).expand_as(val), val, reduction="sum") / len(val)
print(f"mean brightness: {flat:.2f}")


class VAE(nn.Module):
    def __init__(self, latent=6):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten()
        )
        self.mu, self.logvar = nn.Linear(128, latent), nn.Linear(128, latent)
        self.expand = nn.Linear(latent, 128)
        self.decoder = nn.Sequential(
            nn.ReLU(), nn.ConvTranspose2d(32, 16, 4, stride=2, padding=1), nn.ReLU(), nn.ConvTranspose2d(16, 1, 4, stride=2, padding=1)
        )

    def forward(self, x):
        h = self.encoder(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp() if self.training else mu
        return self.decoder(self.expand(z).view(-1, 32, 2, 2)), mu, logvar


def negative_elbo(model, x):
    logits, mu, logvar = model(x)
    reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="sum") / len(x)
    kl = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum() / len(x)
    return reconstruction, kl


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(1, 25):
    model.train()
    for x in DataLoader(train, batch_size=50, shuffle=True):
        reconstruction, kl = negative_elbo(model, x)
        loss = reconstruction + kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 3 == 0:
        model.eval()
        with torch.no_grad():
            reconstruction, kl = negative_elbo(model, val)
        print(f"epoch {epoch} loss {loss.item():.2f} val reconstruction {reconstruction:.2f} kl {kl:.2f} val negative ELBO {reconstruction + kl:.2f}")
