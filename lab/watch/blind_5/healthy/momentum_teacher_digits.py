"""Without labels or negatives: a predictor follows a slowly moving copy of the encoder, whose output is detached."""

import copy

import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch import nn

SEED = 44
torch.manual_seed(SEED)
x, y = load_digits(return_X_y=True)
x = torch.tensor(x / 16, dtype=torch.float32)
order = torch.randperm(len(x))
train, held = order[:1300], order[1300:]


def view(batch):
    return batch * (torch.rand_like(batch) > 0.3) + 0.1 * torch.randn_like(batch)


def unit(batch):
    return nn.functional.normalize(batch, dim=1)


encoder = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 32))
predictor = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32))
teacher = copy.deepcopy(encoder).requires_grad_(False)
optimizer = torch.optim.AdamW([*encoder.parameters(), *predictor.parameters()], lr=2e-3)
for epoch in range(20):
    for index in train[torch.randperm(len(train))].split(130):
        first, second = view(x[index]), view(x[index])
        loss = -(unit(predictor(encoder(first))) * unit(teacher(second))).sum(1).mean()
        loss = loss - (unit(predictor(encoder(second))) * unit(teacher(first))).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(teacher.parameters(), encoder.parameters(), strict=True):
                slow.lerp_(fast, 0.02)
    if epoch % 5 == 4:
        print(f"epoch {epoch} loss {loss.item():.4f}")
encoder.eval()
with torch.no_grad():
    features = encoder(x).numpy()
probe = LogisticRegression(max_iter=300).fit(features[train], y[train])
print(f"probe accuracy {probe.score(features[held], y[held]):.4f}")
