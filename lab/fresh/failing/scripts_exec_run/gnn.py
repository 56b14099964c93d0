"""Node classification with two rounds of mean aggregation."""
import argparse
import csv
import os

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class Sage(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.own, self.other = nn.Linear(a, b), nn.Linear(a, b, bias=False)

    def forward(self, x, edges, degree):
        source, target = edges
        summed = torch.zeros_like(x).index_add_(0, target, x[source])
        return self.own(x) + self.other(summed / degree[:, None])


class Net(nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.first, self.second = Sage(features, hidden), Sage(hidden, classes)

    def forward(self, x, edges, degree):
        x = F.dropout(F.relu(self.first(x, edges, degree)), 0.4, self.training)
        return self.second(x, edges, degree)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--edges", required=True)
    p.add_argument("--features", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--epochs", type=int, default=400)
    args = p.parse_args()
    edges = torch.from_numpy(np.load(args.edges)).long()
    table = torch.from_numpy(np.load(args.features)).float()
    x, y = table[:, :-1], table[:, -1].long()
    degree = torch.bincount(edges[1], minlength=len(x)).clamp(min=1)
    known = torch.rand(len(x), generator=torch.Generator().manual_seed(0)) < 0.6
    model = Net(x.shape[1], 64, int(y.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=5e-4)
    for epoch in range(args.epochs):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x, edges, degree)[known], y[known]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        guess = model(x, edges, degree).argmax(1)
    torch.save(model.state_dict(), os.path.join(args.out, "sage.pt"))
    with open(os.path.join(args.out, "nodes.csv"), "w", newline="") as f:
        csv.writer(f).writerows(enumerate(guess.tolist()))
    print("accuracy", (guess == y)[~known].float().mean().item())


if __name__ == "__main__":
    main()
