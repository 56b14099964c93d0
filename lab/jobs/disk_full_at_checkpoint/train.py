import argparse
import logging
import os

import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger(__name__)


def save_checkpoint(folder, epoch, model, optimizer):
    path = os.path.join(folder, f"epoch_{epoch:03d}.pt")
    torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    log.info("saved %s (%.1f MB)", path, os.path.getsize(path) / 1e6)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 32))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        x = torch.randn(64, 128)
        loss = nn.functional.mse_loss(model(x), x[:, :32])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log.info("epoch %d loss %.4f", epoch, loss.item())
        save_checkpoint(args.output, epoch, model, optimizer)


if __name__ == "__main__":
    main()
