import argparse
import os

import numpy as np
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.lin = nn.Linear(2 * a, b)

    def forward(self, x, edges):
        out = torch.zeros_like(x)
        out.index_add_(0, edges[1], x[edges[0]])
        return self.lin(torch.cat([x, out], 1))


def load(root, name, dtype):
    """name.npy, or the old name.txt."""
    path = os.path.join(root, name + ".npy")
    if not os.path.exists(path):
        path = os.path.join(root, name + ".txt")
        return torch.from_numpy(np.loadtxt(path)).to(dtype)
    return torch.from_numpy(np.load(path)).to(dtype)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--root", default=os.getenv("GRAPH_ROOT", "."))
    p.add_argument("--out")
    p.add_argument("--name", default="local")
    p.add_argument("--epochs", type=int, default=200)
    args = p.parse_args()
    edges = load(args.root, "edges", torch.long)
    table = load(args.root, "features", torch.float)
    x, y = table[:, :-1], table[:, -1].long()
    first, second = Layer(x.shape[1], 32), Layer(32, int(y.max()) + 1)
    parameters = [*first.parameters(), *second.parameters()]
    optimizer = torch.optim.Adam(parameters, 1e-3)
    for epoch in range(args.epochs):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(second(first(x, edges).relu(), edges), y)
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 5.0)
        optimizer.step()
    target = os.path.join(args.out, args.name.replace("/", "_") + ".pt")
    torch.save([first.state_dict(), second.state_dict()], target)
    print("saved", target, loss.item())


if __name__ == "__main__":
    main()
