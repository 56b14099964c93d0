import torch
from torch import nn


class Convolution(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.message = nn.Linear(2 * width, width)
        self.update = nn.GRUCell(width, width)

    def forward(self, nodes, edges):
        source, target = edges
        messages = torch.relu(self.message(torch.cat([nodes[source], nodes[target]], 1)))
        gathered = torch.zeros_like(nodes).index_add_(0, target, messages)
        return self.update(gathered, nodes)


class Network(nn.Module):
    def __init__(self, elements=6, width=32, layers=3):
        super().__init__()
        self.embed = nn.Embedding(elements, width)
        self.layers = nn.ModuleList(Convolution(width) for _ in range(layers))
        self.out = nn.Linear(width, 1)

    def forward(self, elements, edges, graph, graphs):
        nodes = self.embed(elements)
        for layer in self.layers:
            nodes = layer(nodes, edges)
        sums = torch.zeros(graphs, nodes.shape[1]).index_add_(0, graph, nodes)
        sizes = torch.bincount(graph, minlength=graphs)
        return self.out(sums / sizes).squeeze(1)
