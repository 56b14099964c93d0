import argparse

import numpy as np
import torch
from torch import nn


def network():
    return nn.Sequential(nn.Linear(7, 20), nn.SiLU(), nn.Linear(20, 1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    with np.load(args.data) as data:
        x, y = torch.from_numpy(data["x"]), torch.from_numpy(data["y"])
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for epoch in range(60):
        for part in torch.randperm(len(x)).split(50):
            loss = (model(x[part]).squeeze(1) - y[part]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    torch.save({"model": model.state_dict(), "loss": loss.item()}, args.out)
