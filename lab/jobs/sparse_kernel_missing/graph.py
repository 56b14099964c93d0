"""Graph attention on a sparse adjacency matrix."""
import torch
from torch import nn

torch.manual_seed(0)
N, DIM = 60, 8


def random_graph(n, edges):
    pairs = torch.randint(n, (2, edges))
    adjacency = torch.sparse_coo_tensor(pairs, torch.ones(edges), (n, n)).coalesce()
    return adjacency.to_sparse_csr()


class GraphAttention(nn.Module):
    def __init__(self, dim, classes):
        super().__init__()
        self.project = nn.Linear(dim, classes)

    def forward(self, adjacency, x):
        attention = torch.sparse.softmax(adjacency, dim=1)
        return attention @ self.project(x)


adjacency = random_graph(N, 300)
x, labels = torch.randn(N, DIM), torch.randint(3, (N,))
model = GraphAttention(DIM, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(20):
    loss = nn.functional.cross_entropy(model(adjacency, x), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("epoch", epoch, "loss", round(loss.item(), 4))
