"""Variational autoencoder of short strings."""

import argparse
import os

import torch
from torch import nn
from torch.nn import functional as F

LENGTH, SYMBOLS = 24, 30


class VAE(nn.Module):
    def __init__(self, latent, hidden=128):
        super().__init__()
        self.encoder = nn.GRU(SYMBOLS, hidden, batch_first=True)
        self.mean = nn.Linear(hidden, latent)
        self.spread = nn.Linear(hidden, latent)
        self.start = nn.Linear(latent, hidden)
        self.decoder = nn.GRU(latent, hidden, batch_first=True)
        self.out = nn.Linear(hidden, SYMBOLS)

    def forward(self, x):
        _, state = self.encoder(x)
        mean, log_var = self.mean(state[-1]), self.spread(state[-1])
        latent = mean + torch.randn_like(mean) * (0.5 * log_var).exp()
        states, _ = self.decoder(
            latent.unsqueeze(1).expand(-1, LENGTH, -1), self.start(latent).unsqueeze(0).contiguous()
        )
        return self.out(states), mean, log_var


def loss_of(logits, tokens, mean, log_var, beta):
    likelihood = F.cross_entropy(logits.flatten(0, 1), tokens.flatten())
    divergence = -0.5 * (1 + log_var - mean.square() - log_var.exp()).mean()
    return likelihood + beta * divergence


def warm(step, full, beta):
    return beta * min(1.0, step / full)


def positive(text):
    value = float(text)
    if value <= 0:
        raise argparse.ArgumentTypeError("must be above zero")
    return value


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--latent", type=int, default=32)
    parser.add_argument("--beta", type=positive, default=1.0)
    parser.add_argument("--max-steps", type=int, default=100_000)
    parser.add_argument("--warm-up", type=int, default=1000)
    parser.add_argument("--out", default="out")
    return parser.parse_args()


def main():
    args = parse()
    os.makedirs(args.out, exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = VAE(args.latent).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(args.max_steps):
        tokens = torch.randint(SYMBOLS, (64, LENGTH), device=device)
        logits, mean, log_var = model(F.one_hot(tokens, SYMBOLS).float())
        loss = loss_of(logits, tokens, mean, log_var, warm(step, args.warm_up, args.beta))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 500 == 0:
            print(step, f"{loss.item():.4f}", flush=True)
    torch.save(model.state_dict(), os.path.join(args.out, "vae.pt"))


if __name__ == "__main__":
    main()
