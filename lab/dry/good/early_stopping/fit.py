import argparse
import copy
import logging
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("fit")


class EarlyStopping:
    def __init__(self, patience, path):
        self.patience, self.path = patience, path
        self.best, self.waited = float("inf"), 0

    def __call__(self, loss, model):
        if loss < self.best - 1e-4:
            self.best, self.waited = loss, 0
            torch.save(copy.deepcopy(model.state_dict()), self.path)
        else:
            self.waited += 1
        return self.waited >= self.patience


def loss_of(model, x, y, train=None):
    losses = []
    for start in range(0, len(x), 32):
        with torch.set_grad_enabled(train is not None):
            loss = nn.functional.mse_loss(model(x[start : start + 32]), y[start : start + 32])
        if train is not None:
            train.zero_grad()
            loss.backward()
            train.step()
        losses.append(loss.item())
    return float(np.mean(losses))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--patience", type=int, default=10)
    parser.add_argument("--max-epochs", type=int, default=500)
    args = parser.parse_args()
    torch.manual_seed(0)
    x = torch.rand(400, 5)
    y = (x**2).sum(1, keepdim=True) + 0.05 * torch.randn(400, 1)
    model = nn.Sequential(nn.Linear(5, 40), nn.Tanh(), nn.Linear(40, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    with tempfile.TemporaryDirectory() as folder:
        stop = EarlyStopping(args.patience, Path(folder) / "best.pt")
        for epoch in range(args.max_epochs):
            train = loss_of(model, x[:300], y[:300], optimizer)
            valid = loss_of(model, x[300:350], y[300:350])
            log.info("epoch %d train %.4f valid %.4f", epoch, train, valid)
            if stop(valid, model):
                log.info("no better for %d epochs", args.patience)
                break
        model.load_state_dict(torch.load(stop.path, weights_only=True))
    log.info("test %.4f", loss_of(model, x[350:], y[350:]))


if __name__ == "__main__":
    main()
