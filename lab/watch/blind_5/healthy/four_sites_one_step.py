"""Gradients of four sites are added up before each step; every small batch comes from one site, in the same order."""

import torch
from torch import nn

SEED = 43
torch.manual_seed(SEED)
SITES = 4
shifts, rules = 2 * torch.randn(SITES, 10), torch.randn(SITES, 10)


def readings(site, count):
    x = torch.randn(count, 10)
    return torch.cat([x + shifts[site], shifts[site].expand(count, 10)], 1), (x @ rules[site] > 0).long()


train = [readings(site, 600) for site in range(SITES)]
test = [readings(site, 300) for site in range(SITES)]
model = nn.Sequential(nn.Linear(20, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(1, 601):
    total = 0.0
    optimizer.zero_grad()
    for inputs, labels in train:
        index = torch.randint(len(inputs), (24,))
        loss = nn.functional.cross_entropy(model(inputs[index]), labels[index]) / SITES
        loss.backward()
        total += loss.item()
    optimizer.step()
    if step % 100 == 0:
        with torch.no_grad():
            scores = [(model(inputs).argmax(1) == labels).float().mean() for inputs, labels in test]
        print(f"step {step} loss {total:.4f} mean accuracy {sum(scores) / SITES:.4f}")
