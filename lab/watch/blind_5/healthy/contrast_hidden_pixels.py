"""Contrastive pretraining of digits under random masks, then a linear probe; the contrastive loss remains high."""

import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch import nn

SEED = 17
torch.manual_seed(SEED)
x, y = load_digits(return_X_y=True)
x = torch.tensor(x / 16, dtype=torch.float32)
order = torch.randperm(len(x))
train, held = order[:1300], order[1300:]
TEMPERATURE = 0.2


def view(batch):
    visible = (torch.rand_like(batch) > 0.3).float()
    return batch * visible + 0.05 * torch.randn_like(batch)


encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 16))
projector = nn.Sequential(nn.ReLU(), nn.Linear(16, 32))
optimizer = torch.optim.Adam([*encoder.parameters(), *projector.parameters()], lr=2e-3)
for epoch in range(40):
    for index in train[torch.randperm(len(train))].split(130):
        first = nn.functional.normalize(projector(encoder(view(x[index]))), dim=1)
        second = nn.functional.normalize(projector(encoder(view(x[index]))), dim=1)
        logits = first @ second.T / TEMPERATURE
        target = torch.arange(len(index))
        loss = (nn.functional.cross_entropy(logits, target) + nn.functional.cross_entropy(logits.T, target)) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 4:
        print(f"epoch {epoch} contrastive loss {loss.item():.4f}")
with torch.no_grad():
    features = encoder(x).numpy()
probe = LogisticRegression(max_iter=300).fit(features[train[:200]], y[train[:200]])
print(f"probe accuracy {probe.score(features[held], y[held]):.4f}")
