"""SimCLR-style pretraining on spectra with NumPy augmentations, then a linear probe on 60 labels."""

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(1)
rng = np.random.default_rng(1)
LINES = rng.uniform(5, 59, (6, 4))


def spectra(n):
    y = rng.integers(0, 6, n)
    grid = np.arange(64)
    x = np.stack([sum(np.exp(-((grid - c) ** 2) / 4) for c in LINES[k]) for k in y])
    slope = rng.normal(0, 1.5, (n, 1)) * np.linspace(-1, 1, 64) + rng.normal(0, 1.5, (n, 1))
    return (x + slope + rng.normal(0, 0.15, x.shape)).astype(np.float32), y


class TwoViews(Dataset):
    def __init__(self, x):
        self.x = x

    def __len__(self):
        return len(self.x)

    def augment(self, row):
        row = row + rng.normal(0, 1.5) * np.linspace(-1, 1, 64) + rng.normal(0, 1.5)
        row = row + rng.normal(0, 0.15, 64)
        return row.astype(np.float32)

    def __getitem__(self, i):
        return self.augment(self.x[i]), self.augment(self.x[i])


def nt_xent(a, b, temperature=0.2):
    z = F.normalize(torch.cat([a, b]), dim=1)
    sim = z @ z.T / temperature
    sim.fill_diagonal_(float("-inf"))
    n = len(a)
    partner = torch.cat([torch.arange(n) + n, torch.arange(n)])
    return F.cross_entropy(sim, partner)


encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
head = nn.Sequential(nn.ReLU(), nn.Linear(64, 32))
optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=1e-3)
loader = DataLoader(TwoViews(spectra(1500)[0]), batch_size=128, shuffle=True, drop_last=True)
for epoch in range(15):
    total = 0.0
    for v1, v2 in loader:
        loss = nt_xent(head(encoder(v1)), head(encoder(v2)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch + 1} contrastive loss {total / len(loader):.4f}")

few, many = spectra(60), spectra(1000)
with torch.no_grad():
    z_few, z_many = encoder(torch.tensor(few[0])).numpy(), encoder(torch.tensor(many[0])).numpy()
probe = LogisticRegression(max_iter=500).fit(z_few, few[1])
print(f"linear probe accuracy {probe.score(z_many, many[1]):.4f}")
