"""Autoencoder for sensor windows."""

import argparse
import logging
import logging.handlers

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LOG_ROOT = "/var/log/sensor-ae"

logger = logging.getLogger("ae")


def set_up_logging(name):
    formatter = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    file_handler = logging.FileHandler(f"{LOG_ROOT}/{name}.log")
    file_handler.setFormatter(formatter)
    stream = logging.StreamHandler()
    stream.setFormatter(formatter)
    logger.addHandler(file_handler)
    logger.addHandler(stream)
    logger.setLevel(logging.INFO)


class Autoencoder(nn.Module):
    def __init__(self, window=128, code=16):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(window, 64), nn.ReLU(), nn.Linear(64, code))
        self.decode = nn.Sequential(nn.Linear(code, 64), nn.ReLU(), nn.Linear(64, window))

    def forward(self, x):
        return self.decode(self.encode(x))


def windows(count=50000, window=128):
    time = torch.linspace(0, 20, window)
    phase = torch.rand(count, 1) * 6.28
    return TensorDataset(torch.sin(time + phase) + 0.05 * torch.randn(count, window))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", required=True)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    set_up_logging(args.name)
    loader = DataLoader(windows(), batch_size=256, shuffle=True)
    model = Autoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        running = 0.0
        for (batch,) in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(batch), batch)
            loss.backward()
            optimizer.step()
            running += loss.item()
        logger.info("epoch %d loss %.5f", epoch, running / len(loader))


if __name__ == "__main__":
    main()
