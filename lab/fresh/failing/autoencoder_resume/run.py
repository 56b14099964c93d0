"""Denoising autoencoder: trains, then measures the last checkpoint on clean data."""
import argparse
from pathlib import Path

import torch
from torch import nn, optim

WEIGHTS = Path("checkpoints")


class AutoEncoder(nn.Module):
    def __init__(self, size=64, code=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(size, 32), nn.ReLU(), nn.Linear(32, code))
        self.decoder = nn.Sequential(nn.Linear(code, 32), nn.ReLU(), nn.Linear(32, size))

    def forward(self, x):
        return self.decoder(self.encoder(x))


def waves(count, size=64):
    phase = torch.rand(count, 1) * 6.28
    return torch.sin(torch.linspace(0, 12.56, size) + phase)


def checkpoint(epoch):
    return WEIGHTS / f"epoch_{epoch:03d}.pt"


def train(args, device):
    model = AutoEncoder(code=args.code).to(device)
    optimizer = optim.Adam(model.parameters(), lr=args.lr)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    for epoch in range(args.epochs):
        for _ in range(args.batches):
            clean = waves(args.batch_size).to(device)
            noisy = clean + 0.2 * torch.randn_like(clean)
            loss = nn.functional.mse_loss(model(noisy), clean)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        torch.save({"model": model.state_dict(), "epoch": epoch}, checkpoint(epoch))
        print(f"epoch {epoch} loss {loss.item():.4f}")


def evaluate(path, args, device):
    state = torch.load(path, map_location=device)
    model = AutoEncoder(code=args.code).to(device)
    model.load_state_dict(state["model"])
    model.eval()
    with torch.inference_mode():
        clean = waves(1000).to(device)
        error = nn.functional.mse_loss(model(clean), clean)
    return error.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--code", type=int, default=8)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args()
    WEIGHTS.mkdir(exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train(args, device)
    print("error", evaluate(checkpoint(args.epochs), args, device))


if __name__ == "__main__":
    main()
