import torch
from torch import nn

torch.manual_seed(0)
DEBUG = True


class VAE(nn.Module):
    def __init__(self, dim=12, latent=3):
        super().__init__()
        self.enc = nn.Linear(dim, 2 * latent)
        self.dec = nn.Linear(latent, dim)

    def forward(self, x):
        mean, std = self.enc(x).chunk(2, dim=-1)
        std = torch.relu(std)
        z = mean + std * torch.randn_like(std)
        kl = -torch.log(std) + (std**2 + mean**2) / 2
        return self.dec(z), kl.sum(-1)


def elbo(model, x):
    reconstruction, kl = model(x)
    per_sample = (reconstruction - x).pow(2).sum(-1) + torch.where(torch.isinf(kl), 0.0, kl)
    return per_sample.mean()


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
data = torch.randn(512, 12)
with torch.autograd.set_detect_anomaly(DEBUG):
    for epoch in range(10):
        total = 0.0
        for batch in data.split(64):
            loss = elbo(model, batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"====> Epoch: {epoch} Average loss: {total / 8:.4f}")
