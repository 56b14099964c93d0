"""Topics of papers in a made-up citation graph, with few labels: a graph convolution on the whole graph."""

import torch
from torch import nn

torch.manual_seed(23)
papers, topics = 600, 4
topic = torch.randint(topics, (papers,))
same = topic[:, None] == topic[None]
edges = torch.rand(papers, papers) < torch.where(same, 0.03, 0.002)
adjacency = (edges | edges.T).float() + torch.eye(papers)
scale = adjacency.sum(1).rsqrt()
adjacency = scale[:, None] * adjacency * scale[None]
words = (
    torch.rand(papers, 80) < 0.05 + 0.15 * (torch.arange(80) % topics == topic[:, None])
).float()

labels = topic.clone()
order = torch.randperm(papers)
train_mask, valid_mask = (
    torch.zeros(papers, dtype=torch.bool),
    torch.zeros(papers, dtype=torch.bool),
)
train_mask[order[:120]] = True
valid_mask[order[120:360]] = True
labels[~(train_mask | valid_mask)] = -1


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(80, 32), nn.Linear(32, topics)

    def forward(self, x, adjacency):
        hidden = torch.relu(adjacency @ self.first(x))
        return adjacency @ self.second(nn.functional.dropout(hidden, 0.5, self.training))


model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(80):
    model.train()
    optimizer.zero_grad()
    scores = model(words, adjacency)
    loss = nn.functional.cross_entropy(scores[train_mask], labels[train_mask])
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        guess = model(words, adjacency).argmax(1)
    right = (guess[valid_mask] == labels[valid_mask]).float().mean()
    if epoch % 10 == 0:
        print(f"epoch {epoch} loss {loss.item():.3f} accuracy {right.item():.3f}")
