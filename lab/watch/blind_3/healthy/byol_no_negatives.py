"""Two networks, no negatives: an online network predicts a slowly following target; stop-gradient, linear probe on digits."""

import copy

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch import nn

torch.manual_seed(101)
digits = load_digits()
X = torch.tensor(digits.data, dtype=torch.float32) / 16
y = digits.target
order = torch.randperm(len(X))
train_idx, test_idx = order[:1300], order[1300:]


def view(x):
    dropped = x * (torch.rand_like(x) > 0.25)
    return dropped * (0.7 + 0.6 * torch.rand(len(x), 1)) + 0.1 * torch.randn_like(x)


class Online(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 64))
        self.projector = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32))

    def forward(self, x):
        return self.projector(self.encoder(x))


online = Online()
predictor = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32))
target = copy.deepcopy(online)
for p in target.parameters():
    p.requires_grad_(False)
optimizer = torch.optim.AdamW([*online.parameters(), *predictor.parameters()], lr=2e-3, weight_decay=1e-4)


def regression(p, z):
    return 2 - 2 * F.cosine_similarity(p, z.detach(), dim=-1).mean()


def linear_probe():
    online.eval()
    with torch.no_grad():
        features = online.encoder(X).numpy()
    online.train()
    few = train_idx[:200]
    probe = LogisticRegression(max_iter=400).fit(features[few], y[few])
    return probe.score(features[test_idx], y[test_idx])


print(f"probe of random features {linear_probe():.4f}")
for epoch in range(40):
    total, batches = 0.0, train_idx[torch.randperm(1300)].split(130)
    for idx in batches:
        a, b = view(X[idx]), view(X[idx])
        with torch.no_grad():
            za, zb = target(a), target(b)
        loss = regression(predictor(online(a)), zb) + regression(predictor(online(b)), za)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(target.parameters(), online.parameters()):
                slow.lerp_(fast, 0.02)
        total += loss.item() / len(batches)
    if epoch % 10 == 9:
        print(f"epoch {epoch + 1} loss {total:.4f} probe {linear_probe():.4f}")
