"""A variational autoencoder of digits: the divergence counts little at first and fully later."""

import torch
from sklearn.datasets import load_digits
from torch import nn

SEED = 33
torch.manual_seed(SEED)
x = torch.tensor(load_digits().data / 16, dtype=torch.float32)
x = x[torch.randperm(len(x))]
train, held = x[:1400], x[1400:]
LATENT, EPOCHS = 6, 30


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 2 * LATENT))
        self.decoder = nn.Sequential(nn.Linear(LATENT, 96), nn.ReLU(), nn.Linear(96, 64))

    def forward(self, x):
        mean, log_variance = self.encoder(x).chunk(2, 1)
        latent = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        return self.decoder(latent), mean, log_variance


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(EPOCHS):
    for index in torch.randperm(len(train)).split(50):
        batch = train[index]
        logits, mean, log_variance = model(batch)
        ink = nn.functional.binary_cross_entropy_with_logits(logits, batch, reduction="sum") / len(batch)
        divergence = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum(1).mean()
        loss = ink + min(1.0, epoch / 10) * divergence
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 4:
        print(f"epoch {epoch} loss {loss.item():.4f} divergence {divergence.item():.4f}")
with torch.no_grad():
    logits, _, _ = model(held)
    print(f"reconstruction error {(torch.sigmoid(logits) - held).pow(2).sum(1).mean():.4f}")
