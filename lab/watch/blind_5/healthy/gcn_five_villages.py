"""A graph convolution over a friendship graph: 100 labelled nodes, all others are predicted; one batch is the whole graph."""

import torch
from torch import nn

SEED = 29
torch.manual_seed(SEED)
NODES, GROUPS = 600, 5
group = torch.arange(NODES) % GROUPS
same = group[:, None] == group[None]
edges = torch.triu(torch.rand(NODES, NODES) < torch.where(same, 0.03, 0.008), 1).float()
adjacency = edges + edges.T + torch.eye(NODES)
degree = adjacency.sum(1).rsqrt()
adjacency = degree[:, None] * adjacency * degree[None]
features = nn.functional.one_hot(group, GROUPS).float() @ torch.randn(GROUPS, 16) * 0.6 + torch.randn(NODES, 16)
train, test = torch.arange(100), torch.arange(100, NODES)


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, GROUPS)

    def forward(self, x):
        x = nn.functional.dropout(x, 0.6, training=self.training)
        x = torch.relu(adjacency @ self.first(x))
        x = nn.functional.dropout(x, 0.6, training=self.training)
        return adjacency @ self.second(x)


model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=1e-3)
for epoch in range(1, 151):
    model.train()
    loss = nn.functional.cross_entropy(model(features)[train], group[train])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 15 == 0:
        model.eval()
        with torch.no_grad():
            right = model(features).argmax(1) == group
        print(f"epoch {epoch} loss {loss.item():.4f} test accuracy {right[test].float().mean():.4f}")
