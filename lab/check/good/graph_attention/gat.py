import argparse
import pathlib
import pickle

import torch
from torch import nn

try:
    import torch_scatter
except ImportError:
    torch_scatter = None


def scatter_sum(values, index, size):
    if torch_scatter is not None:
        return torch_scatter.scatter_add(values, index, dim=0, dim_size=size)
    shape = (size, *values.shape[1:])
    return torch.zeros(shape).index_add_(0, index, values)


def load_graph(cache):
    path = pathlib.Path(cache) / "graph.pkl"
    try:
        with path.open("rb") as handle:
            return pickle.load(handle)
    except FileNotFoundError:
        pass
    graph = {
        "x": torch.randn(500, 16),
        "edges": torch.randint(0, 500, (2, 4000)),
        "y": torch.randint(0, 3, (500,)),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as handle:
        pickle.dump(graph, handle)
    return graph


class Attention(nn.Module):
    def __init__(self, inputs, outputs, heads):
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(inputs, heads * outputs, bias=False)
        self.score = nn.Parameter(torch.randn(heads, 2 * outputs) * 0.1)

    def forward(self, x, edges):
        hidden = self.project(x).view(len(x), self.heads, -1)
        source, target = edges
        logits = (torch.cat([hidden[source], hidden[target]], -1) * self.score).sum(-1)
        weight = nn.functional.leaky_relu(logits, 0.2).exp()
        total = scatter_sum(weight, target, len(x)).clamp(min=1e-9)
        return scatter_sum(weight.unsqueeze(-1) * hidden[source], target, len(x)) / total.unsqueeze(-1)


class GAT(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.first = Attention(16, 8, heads)
        self.second = Attention(8 * heads, 3, 1)

    def forward(self, x, edges):
        return self.second(self.first(x, edges).flatten(1).relu(), edges).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cache", required=True)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=50)
    args = parser.parse_args()
    graph = load_graph(args.cache)
    model = GAT(args.heads)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(args.epochs):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(graph["x"], graph["edges"]), graph["y"])
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
