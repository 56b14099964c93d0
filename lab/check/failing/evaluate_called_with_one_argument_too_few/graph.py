from typing import NamedTuple

import torch
from torch import nn


class Graph(NamedTuple):
    features: torch.Tensor
    adjacency: torch.Tensor
    labels: torch.Tensor
    train: torch.Tensor


def random_graph(nodes, classes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, classes, (nodes,), generator=generator)
    same = labels[:, None] == labels[None, :]
    chance = torch.where(same, 0.02, 0.002)
    edges = (torch.rand(nodes, nodes, generator=generator) < chance).float()
    edges = ((edges + edges.t() + torch.eye(nodes)) > 0).float()
    degree = edges.sum(1).rsqrt()
    features = nn.functional.one_hot(labels, classes).float()
    features = features + torch.randn(nodes, classes, generator=generator)
    train = torch.rand(nodes, generator=generator) < 0.1
    return Graph(features, degree[:, None] * edges * degree[None, :], labels, train)


class GCN(nn.Module):
    def __init__(self, inputs, hidden, classes):
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.second = nn.Linear(hidden, classes)

    def forward(self, features, adjacency):
        hidden = torch.relu(adjacency @ self.first(features))
        return adjacency @ self.second(hidden)
