"""Classifies random graphs by whether they have a ring, and by their heavy atoms: message passing written with index_add."""

import random

import torch
import torch.nn.functional as F
from torch import nn

random.seed(31)
torch.manual_seed(31)
ATOMS = 5


def graph():
    """Two parts: a path or ring of 5 to 7 nodes, and a tree that hangs on it; the label is ring or path, and whether most of its atoms are heavy."""
    ring, n = random.random() < 0.5, random.randint(5, 7)
    edges = [(i, i + 1) for i in range(n - 1)] + ([(n - 1, 0)] if ring else [])
    total = n + random.randint(3, 6)
    edges += [(i, random.randrange(i)) for i in range(n, total)]
    atoms = [random.randrange(ATOMS) for _ in range(total)]
    heavy = sum(a >= 3 for a in atoms[:n]) * 2 > n
    src = [a for a, b in edges] + [b for a, b in edges]
    dst = [b for a, b in edges] + [a for a, b in edges]
    return torch.tensor(atoms), torch.tensor([src, dst]), 2 * int(ring) + int(heavy)


def collate(graphs):
    atoms, edges, owner, labels, offset = [], [], [], [], 0
    for number, (nodes, edge_index, label) in enumerate(graphs):
        atoms.append(nodes)
        edges.append(edge_index + offset)
        owner.append(torch.full((len(nodes),), number))
        labels.append(label)
        offset += len(nodes)
    return torch.cat(atoms), torch.cat(edges, 1), torch.cat(owner), torch.tensor(labels)


class Conv(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.BatchNorm1d(dim), nn.ReLU(), nn.Linear(dim, dim))

    def forward(self, h, edges):
        received = torch.zeros_like(h).index_add_(0, edges[1], h[edges[0]])
        return self.mlp(h + received)


class GIN(nn.Module):
    def __init__(self, dim=24, layers=4, classes=4, p=0.6):
        super().__init__()
        self.p = p
        self.atom = nn.Embedding(ATOMS, dim)
        self.convs = nn.ModuleList(Conv(dim) for _ in range(layers))
        self.out = nn.Linear(dim, classes)

    def forward(self, atoms, edges, owner):
        h = self.atom(atoms)
        for conv in self.convs:
            h = F.relu(conv(h, edges))
        graphs = int(owner.max()) + 1
        pooled = torch.zeros(graphs, h.size(1)).index_add_(0, owner, h)
        pooled = pooled / torch.bincount(owner)[:, None]
        pooled = F.dropout(pooled, self.p, training=self.training)
        return self.out(pooled)


train, test = [graph() for _ in range(1500)], [graph() for _ in range(500)]
loader = torch.utils.data.DataLoader(train, batch_size=50, shuffle=True, collate_fn=collate)
test_batches = [collate(test[i : i + 100]) for i in range(0, 500, 100)]
model = GIN()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=8, gamma=0.4)
for epoch in range(1, 19):
    model.train()
    total = 0.0
    for atoms, edges, owner, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(atoms, edges, owner), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        hits = sum((model(a, e, o).argmax(1) == y).sum().item() for a, e, o, y in test_batches)
    print(f"Epoch {epoch:02d}, train loss {total / len(loader):.4f}, test acc {hits / 500:.4f}")
