"""Sets of vectors with masked attention pooling: does the set contain two close vectors of a kind?"""

import torch
from torch import nn

torch.manual_seed(16)
COUNT, LONGEST, WIDTH = 1200, 10, 12
lengths = torch.randint(4, LONGEST + 1, (COUNT,))
items = torch.randn(COUNT, LONGEST, WIDTH)
mask = torch.arange(LONGEST) < lengths.unsqueeze(1)
labels = torch.randint(3, (COUNT,))
pattern = torch.randn(3, WIDTH) * 1.5
items[torch.arange(COUNT), torch.randint(4, (COUNT,))] += pattern[labels]


class Pooling(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(WIDTH, 32)
        self.query, self.key = nn.Linear(32, 32), nn.Linear(32, 32)
        self.score = nn.Linear(32, 1)
        self.classify = nn.Linear(32, 3)

    def forward(self, items, mask):
        h = torch.relu(self.project(items))
        attention = self.query(h) @ self.key(h).transpose(1, 2) / 32**0.5
        attention = attention.masked_fill(~mask.unsqueeze(1), -1e9)
        h = h + torch.softmax(attention, dim=-1) @ h
        scores = self.score(torch.tanh(h)).squeeze(-1).masked_fill(~mask, -1e9)
        pooled = (torch.softmax(scores, dim=1).unsqueeze(-1) * h).sum(1)
        return self.classify(pooled)


model = Pooling()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    for part in torch.randperm(1000).split(40):
        logits = model(items[part], mask[part])
        log_probabilities = torch.log_softmax(logits, dim=1)
        loss = nn.functional.nll_loss(log_probabilities, labels[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = model(items[1000:], mask[1000:]).argmax(1) == labels[1000:]
    print(f"epoch {epoch} loss {loss.item():.3f} accuracy {right.float().mean().item():.3f}")
