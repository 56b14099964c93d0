"""Node classification with a two-layer graph network in plain torch."""

import argparse
import os
import sys

import torch
from torch import nn
import torch.nn.functional as F

BEST = "best_graph.pth"


class Layer(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, adjacency, x):
        return torch.sparse.mm(adjacency, self.linear(x))


class Network(nn.Module):
    def __init__(self, features, hidden, classes, dropout):
        super().__init__()
        self.first = Layer(features, hidden)
        self.second = Layer(hidden, classes)
        self.dropout = dropout

    def forward(self, adjacency, x):
        x = F.relu(self.first(adjacency, x))
        x = F.dropout(x, self.dropout, self.training)
        return self.second(adjacency, x)


def communities(nodes, classes, seed):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (nodes,), generator=generator)
    same = labels[:, None] == labels[None, :]
    edges = torch.rand(nodes, nodes, generator=generator) < torch.where(same, 0.1, 0.01)
    edges = (edges | edges.t() | torch.eye(nodes, dtype=torch.bool)).float()
    degree = edges.sum(1).rsqrt()
    adjacency = (degree[:, None] * edges * degree[None, :]).to_sparse()
    features = F.one_hot(labels, classes).float() + torch.randn(nodes, classes, generator=generator)
    return adjacency, features, labels


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=["train", "test", "train-and-test"])
    parser.add_argument("--nodes", type=int, default=400)
    parser.add_argument("--classes", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--dropout", type=float, default=0.5)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=3)
    return parser.parse_args()


def train(args, device):
    adjacency, features, labels = (t.to(device) for t in communities(args.nodes, args.classes, args.seed))
    model = Network(args.classes, args.hidden, args.classes, args.dropout).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    half, best = args.nodes // 2, -1.0
    for epoch in range(args.epochs):
        model.train()
        loss = F.cross_entropy(model(adjacency, features)[:half], labels[:half])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            right = model(adjacency, features)[half:].argmax(1) == labels[half:]
        accuracy = right.float().mean().item()
        if accuracy > best:
            best = accuracy
            state = {"model": model.state_dict(), "args": args, "accuracy": accuracy, "epoch": epoch}
            torch.save(state, BEST)
    return best


def test(device):
    if not os.path.exists(BEST):
        sys.exit("train first")
    state = torch.load(BEST, map_location=device)
    saved = state["args"]
    model = Network(saved.classes, saved.hidden, saved.classes, saved.dropout).to(device)
    model.load_state_dict(state["model"])
    model.eval()
    adjacency, features, labels = communities(saved.nodes, saved.classes, saved.seed + 1)
    with torch.no_grad():
        guess = model(adjacency.to(device), features.to(device)).argmax(1).cpu()
    return (guess == labels).float().mean().item()


if __name__ == "__main__":
    args = arguments()
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    if args.mode in ("train", "train-and-test"):
        print("best", train(args, device))
    if args.mode in ("test", "train-and-test"):
        print("other graph", test(device))
