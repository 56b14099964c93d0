"""Rain in the next minutes from radar frames.

    nowcast.py fit --data DIR --out DIR
    nowcast.py score --data DIR --weights FILE
"""
import argparse
import os
import sys

import numpy as np
import torch
from torch import nn


class Nowcast(nn.Module):
    def __init__(self, hidden, horizon):
        super().__init__()
        self.encode = nn.Sequential(nn.Conv2d(4, hidden, 3, padding=1), nn.ReLU(),
                                    nn.Conv2d(hidden, hidden, 3, padding=1), nn.ReLU())
        self.decode = nn.Conv2d(hidden, horizon, 1)

    def forward(self, frames):
        return torch.relu(self.decode(self.encode(frames)))


def frames(folder, name, horizon):
    with np.load(os.path.join(folder, name + ".npz")) as f:
        rain = torch.from_numpy(f["rain"]).float()
    return rain[:, :4], rain[:, 4:4 + horizon]


def fit(args):
    torch.manual_seed(3)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    x, y = frames(args.data, "train", args.horizon)
    model = Nowcast(args.hidden, args.horizon).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        for part in torch.randperm(len(x)).split(8):
            loss = (model(x[part].to(device)) - y[part].to(device)).abs().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss", loss.item(), flush=True)
    torch.save(model.state_dict(), os.path.join(args.out, "final.pt"))


def score(args):
    x, y = frames(args.data, "test", args.horizon)
    model = Nowcast(args.hidden, args.horizon)
    model.load_state_dict(torch.load(args.weights, map_location="cpu"))
    with torch.no_grad():
        p = torch.cat([model(part) for part in x.split(16)])
    for threshold in args.thresholds:
        hit = ((p > threshold) & (y > threshold)).sum().item()
        union = ((p > threshold) | (y > threshold)).sum().item()
        print("csi", threshold, hit / max(union, 1))


def parser():
    top = argparse.ArgumentParser(usage=__doc__)
    sub = top.add_subparsers(required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--data", required=True)
    shared.add_argument("--horizon", type=int, default=3)
    shared.add_argument("--hidden", type=int, default=32)
    one = sub.add_parser("fit", parents=[shared])
    one.add_argument("--out", required=True)
    one.add_argument("--epochs", type=int, default=10)
    one.add_argument("--lr", type=float, default=1e-3)
    one.set_defaults(run=fit)
    two = sub.add_parser("score", parents=[shared])
    two.add_argument("--weights", required=True)
    two.add_argument("--thresholds", type=float, nargs="+", default=[0.5, 1.0])
    two.set_defaults(run=score)
    return top


if __name__ == "__main__":
    options = parser().parse_args(sys.argv[1:])
    options.run(options)
