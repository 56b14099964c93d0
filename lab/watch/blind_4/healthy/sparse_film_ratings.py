"""Matrix factorisation of film ratings with sparse embeddings: most rows get no gradient in most steps."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(73)
rng = np.random.default_rng(73)
USERS, FILMS, RANK = 400, 250, 3
taste, style = rng.normal(size=(USERS, RANK)), rng.normal(size=(FILMS, RANK))
user, film = rng.integers(0, USERS, 24000), rng.integers(0, FILMS, 24000)
liking = 3.0 + 0.5 * (taste[user] * style[film]).sum(1) + 0.15 * rng.normal(size=24000)
stars = np.clip(np.round(2 * liking) / 2, 0.5, 5.0)

users, films = torch.tensor(user), torch.tensor(film)
ratings = torch.tensor(stars, dtype=torch.float32)
held_ratings = torch.tensor(stars[20000:])


class Factors(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.user = nn.Embedding(USERS, width, sparse=True)
        self.film = nn.Embedding(FILMS, width, sparse=True)
        self.bias = nn.Embedding(FILMS, 1, sparse=True)
        for table in (self.user, self.film):
            nn.init.normal_(table.weight, std=0.3)
        nn.init.zeros_(self.bias.weight)
        self.middle = 3.0

    def forward(self, u, f):
        return self.middle + (self.user(u) * self.film(f)).sum(1) + self.bias(f).squeeze(1)


model = Factors()
optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=8e-3)
for epoch in range(12):
    total = 0.0
    for rows in torch.randperm(20000).split(200):
        loss = (model(users[rows], films[rows]) - ratings[rows]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1} mse {total / 100:.4f}")

with torch.no_grad():
    guess = model(users[20000:], films[20000:]).clamp(0.5, 5.0)
    print(f"held-out rmse {(guess - held_ratings).pow(2).mean().sqrt().item():.4f}")
