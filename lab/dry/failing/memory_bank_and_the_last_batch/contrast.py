"""Momentum contrast with a queue of negatives."""
import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


class Contrast(nn.Module):
    def __init__(self, width=32, size=256, momentum=0.99):
        super().__init__()
        self.query = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, width))
        self.key = copy.deepcopy(self.query).requires_grad_(False)
        self.momentum, self.size, self.position = momentum, size, 0
        self.register_buffer("queue", F.normalize(torch.randn(width, size), dim=0))

    @torch.no_grad()
    def update(self, keys):
        for own, shared in zip(self.key.parameters(), self.query.parameters()):
            own.lerp_(shared, 1 - self.momentum)
        end = self.position + len(keys)
        self.queue[:, self.position : end] = keys.T
        self.position = end % self.size

    def forward(self, first, second):
        query = F.normalize(self.query(first), dim=1)
        with torch.no_grad():
            keys = F.normalize(self.key(second), dim=1)
        positive = (query * keys).sum(1, keepdim=True)
        logits = torch.cat([positive, query @ self.queue.clone()], dim=1) / 0.2
        self.update(keys)
        return F.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long))


torch.manual_seed(0)
samples = torch.randn(1000, 64)
loader = DataLoader(samples, batch_size=64, shuffle=True)
model = Contrast()
optimizer = torch.optim.SGD(model.query.parameters(), lr=0.03)
for epoch in range(10):
    for batch in loader:
        loss = model(batch + 0.1 * torch.randn_like(batch), batch + 0.1 * torch.randn_like(batch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
