"""Node classification with a two-layer graph network."""

import argparse
import os

import torch
from torch import nn

from evaluation import evaluate
from graph import GCN, random_graph


def train(model, graph, epochs, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, weight_decay=5e-4)
    model.train()
    for epoch in range(epochs):
        optimizer.zero_grad()
        logits = model(graph.features, graph.adjacency)
        loss = nn.functional.cross_entropy(logits[graph.train], graph.labels[graph.train])
        loss.backward()
        optimizer.step()
        if epoch % 10 == 0:
            print(f"epoch {epoch:3d} loss {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--output", default="output")
    args = parser.parse_args()
    os.makedirs(args.output, exist_ok=True)
    graph = random_graph(nodes=2000, classes=4)
    model = GCN(graph.features.shape[1], args.hidden, 4)
    train(model, graph, args.epochs, args.lr)
    torch.save(model.state_dict(), os.path.join(args.output, "gcn.pt"))
    accuracy = evaluate(model, graph)
    print(f"test accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
