"""Semi-supervised node classification on a random citation graph: 8 labelled nodes a class, full batch, training accuracy 1."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(11)
CLASSES, PER_CLASS, FEATURES = 5, 240, 60
N = CLASSES * PER_CLASS


def make_graph():
    y = torch.randint(0, CLASSES, (N,))
    same = y[:, None] == y[None, :]
    prob = torch.where(same, 0.022, 0.002)
    adj = (torch.rand(N, N) < prob).float().triu(1)
    adj = adj + adj.T + torch.eye(N)
    deg = adj.sum(1).rsqrt()
    adj = deg[:, None] * adj * deg[None, :]
    topics = torch.rand(CLASSES, FEATURES) * 0.05 + 0.02
    topics[torch.arange(FEATURES) % CLASSES, torch.arange(FEATURES)] += 0.05
    x = (torch.rand(N, FEATURES) < topics[y]).float()
    return adj.to_sparse(), x / x.sum(1, keepdim=True).clamp(min=1), y


class GCN(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.lin1 = nn.Linear(FEATURES, hidden)
        self.lin2 = nn.Linear(hidden, CLASSES)
        self.drop = nn.Dropout(0.5)

    def forward(self, x, adj):
        h = F.relu(torch.sparse.mm(adj, self.lin1(self.drop(x))))
        h = torch.sparse.mm(adj, self.lin2(self.drop(h)))
        return F.log_softmax(h, dim=1)


adj, x, y = make_graph()
perm = torch.randperm(N)
train_idx = torch.cat([perm[y[perm] == c][:8] for c in range(CLASSES)])
rest = perm[~torch.isin(perm, train_idx)]
val_idx, test_idx = rest[:300], rest[300:]

model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)


def train():
    model.train()
    optimizer.zero_grad()
    out = model(x, adj)
    loss = F.nll_loss(out[train_idx], y[train_idx])
    loss.backward()
    optimizer.step()
    return float(loss)


@torch.no_grad()
def test():
    model.eval()
    pred = model(x, adj).argmax(dim=1)
    return [(pred[idx] == y[idx]).float().mean().item() for idx in (train_idx, val_idx, test_idx)]


for epoch in range(1, 401):
    loss = train()
    if epoch % 40 == 0:
        train_acc, val_acc, test_acc = test()
        print(f"Epoch {epoch:03d}, Loss: {loss:.4f}, Train: {train_acc:.4f}, Val: {val_acc:.4f}, test_acc: {test_acc:.4f}")
