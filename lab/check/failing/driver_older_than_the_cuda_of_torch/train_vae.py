import argparse

import torch
from torch import nn
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self, pixels, latent):
        super().__init__()
        self.encoder = nn.Linear(pixels, 400)
        self.mean = nn.Linear(400, latent)
        self.log_variance = nn.Linear(400, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 400), nn.ReLU(), nn.Linear(400, pixels))

    def forward(self, x):
        hidden = F.relu(self.encoder(x))
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        noise = torch.randn_like(mean)
        return self.decoder(mean + noise * (0.5 * log_variance).exp()), mean, log_variance


def elbo(logits, x, mean, log_variance):
    likelihood = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    divergence = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum()
    return (likelihood + divergence) / len(x)


def shapes(count, side=28):
    """White squares on black ground."""
    images = torch.zeros(count, side, side)
    for number in range(count):
        top, left = torch.randint(0, side - 8, (2,)).tolist()
        images[number, top : top + 8, left : left + 8] = 1.0
    return images.flatten(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--latent", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=256)
    args = parser.parse_args()
    images = shapes(20000)
    model = VAE(images.shape[1], args.latent).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        for batch in images[torch.randperm(len(images))].split(args.batch_size):
            batch = batch.cuda()
            loss = elbo(*(lambda out: (out[0], batch, out[1], out[2]))(model(batch)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.2f}")


if __name__ == "__main__":
    main()
