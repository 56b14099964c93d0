"""Matrix factorization of ratings with embeddings and biases; some users and items are never seen."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(79)
torch.manual_seed(79)
USERS, ITEMS, RANK = 300, 200, 5
p, q = rng.normal(0, 0.6, (USERS, RANK)), rng.normal(0, 0.6, (ITEMS, RANK))
bu, bi = rng.normal(0, 0.3, USERS), rng.normal(0, 0.5, ITEMS)
u, i = rng.integers(0, USERS - 10, 15000), rng.integers(0, ITEMS - 5, 15000)
rating = np.clip(3.5 + bu[u] + bi[i] + (p[u] * q[i]).sum(1) + rng.normal(0, 0.3, 15000), 1, 5)
u, i, rating = torch.tensor(u), torch.tensor(i), torch.tensor(rating, dtype=torch.float32)


class MF(nn.Module):
    def __init__(self, mean):
        super().__init__()
        self.user, self.item = nn.Embedding(USERS, 8), nn.Embedding(ITEMS, 8)
        self.user_bias, self.item_bias = nn.Embedding(USERS, 1), nn.Embedding(ITEMS, 1)
        self.mean = mean
        for table in (self.user, self.item):
            nn.init.normal_(table.weight, std=0.1)
        for table in (self.user_bias, self.item_bias):
            nn.init.zeros_(table.weight)

    def forward(self, user, item):
        dot = (self.user(user) * self.item(item)).sum(1)
        return self.mean + dot + self.user_bias(user).squeeze(1) + self.item_bias(item).squeeze(1)


train_loader = DataLoader(TensorDataset(u[:12000], i[:12000], rating[:12000]), batch_size=128, shuffle=True)
model = MF(rating[:12000].mean().item())
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.02)
for epoch in range(1, 13):
    total = 0.0
    for user, item, score in train_loader:
        loss = ((model(user, item) - score) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        rmse = ((model(u[12000:], i[12000:]) - rating[12000:]) ** 2).mean().sqrt().item()
    print(f"epoch {epoch} mse {total / len(train_loader):.4f} test rmse {rmse:.4f}")
