"""A variational autoencoder of handwritten digits, with the distributions of torch."""
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.distributions import Normal, kl_divergence

SEED = 37
torch.manual_seed(SEED)


class Encoder(nn.Module):
    def __init__(self, latent):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 2 * latent))

    def forward(self, images):
        mean, spread = self.body(images).chunk(2, -1)
        return Normal(mean, nn.functional.softplus(spread) + 1e-3)


class Autoencoder(nn.Module):
    def __init__(self, latent=12):
        super().__init__()
        self.encoder = Encoder(latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 128), nn.ReLU(), nn.Linear(128, 64))
        self.prior = Normal(torch.zeros(latent), torch.ones(latent))

    def forward(self, images):
        code = self.encoder(images)
        return self.decoder(code.rsample()), kl_divergence(code, self.prior).sum(-1)


images = torch.tensor(load_digits().data / 16, dtype=torch.float32)
images = images[torch.randperm(len(images))]
train, test = images[:1400], images[1400:]
model = Autoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(40):
    model.train()
    total = 0.0
    for batch in train[torch.randperm(len(train))].split(50):
        drawn, divergence = model(batch)
        error = (drawn - batch).square().sum(-1)
        loss = (10 * error + divergence).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
    if epoch % 8 == 7:
        model.eval()
        with torch.no_grad():
            drawn = model.decoder(model.encoder(test).mean)
        print(f"epoch {epoch + 1}: loss {total / len(train):.3f}, squared error {(drawn - test).square().sum(-1).mean():.4f}")
