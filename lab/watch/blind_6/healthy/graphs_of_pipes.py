"""Classifies small pipe networks by their shape, with a graph network over batches that are joined by hand."""
import random

import torch
from torch import nn

SEED = 13
KINDS = ("ring", "star", "line", "mesh")
random.seed(SEED)
torch.manual_seed(SEED)


def network(kind):
    size = random.randint(6, 12)
    nodes = list(range(size))
    random.shuffle(nodes)
    pairs = list(zip(nodes, nodes[1:]))
    if kind == "ring":
        pairs.append((nodes[-1], nodes[0]))
    elif kind == "star":
        pairs = [(nodes[0], node) for node in nodes[1:]]
    elif kind == "mesh":
        pairs += [(a, b) for a, b in zip(nodes, nodes[2:])]
    pairs += [tuple(random.sample(nodes, 2))] if random.random() < 0.3 else []
    edges = torch.tensor(pairs + [(b, a) for a, b in pairs]).T
    return torch.randn(size, 3) * 0.3 + 1, edges, KINDS.index(kind)


def join(graphs):
    """One graph with the nodes of all: indices of edges move up by the nodes before them."""
    features, edges, owner, labels, offset = [], [], [], [], 0
    for number, (nodes, links, label) in enumerate(graphs):
        features.append(nodes)
        edges.append(links + offset)
        owner.append(torch.full((len(nodes),), number))
        labels.append(label)
        offset += len(nodes)
    return torch.cat(features), torch.cat(edges, 1), torch.cat(owner), torch.tensor(labels)


class Layer(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(inside, outside), nn.ReLU(), nn.Linear(outside, outside), nn.ReLU())

    def forward(self, nodes, edges):
        source, target = edges
        return self.mlp(nodes + torch.zeros_like(nodes).index_add(0, target, nodes[source]))


class PipeNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.layers = nn.ModuleList([Layer(3, width), Layer(width, width), Layer(width, width)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, len(KINDS))

    def forward(self, nodes, edges, owner):
        for layer in self.layers:
            nodes = layer(nodes, edges)
        count = int(owner.max()) + 1
        total = torch.zeros(count, nodes.shape[1]).index_add(0, owner, nodes)
        return self.head(self.norm(total / torch.bincount(owner)[:, None]))


train = [network(random.choice(KINDS)) for _ in range(800)]
test = [network(random.choice(KINDS)) for _ in range(300)]
model = PipeNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    model.train()
    random.shuffle(train)
    total = 0.0
    for low in range(0, len(train), 20):
        nodes, edges, owner, labels = join(train[low : low + 20])
        loss = nn.functional.cross_entropy(model(nodes, edges, owner), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
    model.eval()
    right = 0
    with torch.no_grad():
        for low in range(0, len(test), 50):
            nodes, edges, owner, labels = join(test[low : low + 50])
            right += (model(nodes, edges, owner).argmax(1) == labels).sum().item()
    print(f"epoch {epoch + 1}: loss {total / len(train):.4f}, test accuracy {right / len(test):.4f}")
