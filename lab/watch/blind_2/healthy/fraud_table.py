"""Rare fraud (3 %) in a table with categories, by entity embeddings and a sampler that draws both classes equally often."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(7)
rng = np.random.default_rng(7)
SHOPS = [f"shop_{i:02d}" for i in range(30)]
RISK = rng.normal(0, 1.6, len(SHOPS))


def transactions(n):
    shop = rng.integers(0, len(SHOPS), n)
    amount = rng.lognormal(3, 1, n)
    hour = rng.integers(0, 24, n)
    score = RISK[shop] + 0.8 * (np.log(amount) - 3) + 1.2 * ((hour < 6) * 1.0) + rng.normal(0, 0.5, n)
    return [SHOPS[s] for s in shop], np.stack([np.log(amount) - 3, hour / 12 - 1], 1), score


def fit_codes(names):
    return {name: code for code, name in enumerate(dict.fromkeys(names))}


def encode(names, codes):
    return torch.tensor([codes.get(name, len(SHOPS)) for name in names])


class FraudNet(nn.Module):
    def __init__(self, cards, dim=8):
        super().__init__()
        self.shop = nn.Embedding(cards + 1, dim)
        self.mlp = nn.Sequential(nn.Linear(dim + 2, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 2))

    def forward(self, shop, numbers):
        return self.mlp(torch.cat([self.shop(shop), numbers], 1))


def average_precision(scores, labels):
    hits = labels[scores.argsort(descending=True)].float()
    precision = hits.cumsum(0) / torch.arange(1, len(hits) + 1)
    return ((precision * hits).sum() / hits.sum()).item()


train_shop, train_num, train_score = transactions(8000)
val_shop, val_num, val_score = transactions(3000)
threshold = np.quantile(train_score, 0.97)
y_train = torch.tensor((train_score > threshold).astype(int))
y_val = torch.tensor((val_score > threshold).astype(int))
codes = fit_codes(train_shop)
x_train = (encode(train_shop, codes), torch.tensor(train_num, dtype=torch.float32))
x_val = (encode(val_shop, codes), torch.tensor(val_num, dtype=torch.float32))

class_counts = torch.bincount(y_train)
weights = (1.0 / class_counts)[y_train]
sampler = WeightedRandomSampler(weights.double(), num_samples=len(y_train), replacement=True)
loader = DataLoader(TensorDataset(*x_train, y_train), batch_size=128, sampler=sampler)
model = FraudNet(len(SHOPS))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(8):
    model.train()
    seen = 0.0
    for shop, numbers, target in loader:
        optimizer.zero_grad()
        loss = criterion(model(shop, numbers), target)
        loss.backward()
        optimizer.step()
        seen += loss.item()
    model.eval()
    with torch.no_grad():
        logits = model(*x_val)
        val_loss = criterion(logits, y_val).item()
        recall = (logits.argmax(1)[y_val == 1] == 1).float().mean().item()
        ap = average_precision(logits[:, 1] - logits[:, 0], y_val)
    print(f"epoch {epoch} loss {seen / len(loader):.4f} val_loss {val_loss:.4f} recall {recall:.3f} val_ap {ap:.4f}")
