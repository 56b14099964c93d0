"""Link prediction in a social graph with node embeddings; later members join and the table of embeddings grows."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(29)
OLD, ALL, GROUPS = 200, 320, 5
group = torch.randint(0, GROUPS, (ALL,))
chance = torch.where(group[:, None] == group[None, :], 0.25, 0.02)
adjacency = torch.triu(torch.rand(ALL, ALL) < chance, 1)
edges = adjacency.nonzero()
edges = edges[torch.randperm(len(edges))]
held, known = edges[: len(edges) // 5], edges[len(edges) // 5 :]


class LinkModel(nn.Module):
    def __init__(self, count, width=16):
        super().__init__()
        self.members = nn.Embedding(count, width)
        self.mix = nn.Linear(width, width)

    def grow(self, count):
        table = nn.Embedding(count, self.members.embedding_dim)
        with torch.no_grad():
            table.weight[: self.members.num_embeddings] = self.members.weight
        self.members = table

    def forward(self, pairs):
        h = self.mix(self.members(pairs))
        return (h[:, 0] * h[:, 1]).sum(-1)


def train(model, optimizer, links, count, epochs):
    for epoch in range(epochs):
        for part in links[torch.randperm(len(links))].split(256):
            wrong = torch.randint(0, count, part.shape)
            logits = model(torch.cat([part, wrong]))
            loss = F.binary_cross_entropy_with_logits(logits, torch.cat([torch.ones(len(part)), torch.zeros(len(wrong))]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 10 == 9:
            print(f"{count} members epoch {epoch + 1} loss {loss.item():.4f}")


model = LinkModel(OLD)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-3)
train(model, optimizer, known[(known < OLD).all(1)], OLD, epochs=20)

model.grow(ALL)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-3)
train(model, optimizer, known, ALL, epochs=30)

with torch.no_grad():
    links = held[(held >= OLD).any(1)]
    wrong = torch.randint(0, ALL, (2000, 2))
    wrong = wrong[group[wrong[:, 0]] != group[wrong[:, 1]]]
    auc = (model(links)[:, None] > model(wrong)[None, :]).float().mean().item()
print(f"new members auc {auc:.4f}")
