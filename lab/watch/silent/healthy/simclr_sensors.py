"""Contrastive learning of sensor readings: two noisy views of each, the other examples as negatives."""

import torch
from torch import nn

torch.manual_seed(6)
groups = torch.randn(12, 24) * 2
kinds = torch.randint(12, (1536,))
readings = groups[kinds] + torch.randn(1536, 24)

encoder = nn.Sequential(nn.Linear(24, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Linear(96, 32))
projector = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 16))
parameters = [*encoder.parameters(), *projector.parameters()]
optimizer = torch.optim.Adam(parameters, lr=1e-3)


def view(x):
    return x * (torch.rand_like(x) > 0.2) + 0.1 * torch.randn_like(x)


def nt_xent(a, b, temperature=0.2):
    n = len(a)
    z = nn.functional.normalize(torch.cat([a, b]), dim=1)
    similar = z @ z.T / temperature
    similar = similar.masked_fill(torch.eye(2 * n, dtype=torch.bool), -1e9)
    target = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return nn.functional.cross_entropy(similar, target)


for epoch in range(15):
    for part in torch.randperm(1536).split(96):
        x = readings[part]
        loss = nt_xent(projector(encoder(view(x))), projector(encoder(view(x))))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.3f}")
