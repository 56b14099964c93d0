"""A variational autoencoder for 8 by 8 digits."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(16)
digits = torch.tensor(load_digits().data).float() / 16
digits = digits[torch.randperm(len(digits))]


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 96), nn.ReLU())
        self.mean, self.log_variance = nn.Linear(96, 8), nn.Linear(96, 8)
        self.decoder = nn.Sequential(nn.Linear(8, 96), nn.ReLU(), nn.Linear(96, 64))

    def forward(self, x):
        hidden = self.encoder(x)
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
        return self.decoder(z), mean, log_variance


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(12):
    for part in torch.randperm(1500).split(50):
        x = digits[part]
        output, mean, log_variance = model(x)
        rebuilt = nn.functional.binary_cross_entropy_with_logits(output, x, reduction="sum") / len(
            x
        )
        divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(1).mean()
        loss = rebuilt + divergence
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} rebuilt {rebuilt.item():.2f} divergence {divergence.item():.2f}")
