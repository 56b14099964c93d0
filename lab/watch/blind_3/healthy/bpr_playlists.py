"""Songs for listeners from implicit feedback: factorisation with sampled negatives and a pairwise loss that begins at log 2."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

rng = np.random.default_rng(29)
torch.manual_seed(29)
USERS, SONGS, TASTES, HEARD = 400, 250, 6, 18
users = rng.dirichlet(np.full(TASTES, 0.25), USERS)
songs = rng.dirichlet(np.full(TASTES, 0.25), SONGS)
popularity = rng.lognormal(0, 0.5, SONGS)
chance = (users @ songs.T) ** 2 * popularity
heard = np.stack([rng.choice(SONGS, HEARD, replace=False, p=c / c.sum()) for c in chance])
held_out = heard[:, 0]
pairs = torch.tensor([(u, s) for u in range(USERS) for s in heard[u, 1:]])
liked = torch.zeros(USERS, SONGS, dtype=torch.bool)
liked[pairs[:, 0], pairs[:, 1]] = True


class Factors(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.user = nn.Embedding(USERS, dim)
        self.song = nn.Embedding(SONGS, dim)
        self.bias = nn.Embedding(SONGS, 1)
        nn.init.normal_(self.user.weight, std=0.05)
        nn.init.normal_(self.song.weight, std=0.05)
        nn.init.zeros_(self.bias.weight)

    def forward(self, user, song):
        return (self.user(user) * self.song(song)).sum(-1) + self.bias(song).squeeze(-1)


def negatives(user):
    song = torch.randint(SONGS, user.shape)
    while (clash := liked[user, song]).any():
        song[clash] = torch.randint(SONGS, (int(clash.sum()),))
    return song


@torch.no_grad()
def hit_rate(model, k=20):
    everyone = torch.arange(USERS)[:, None]
    scores = model(everyone, torch.arange(SONGS)[None]).masked_fill(liked, -torch.inf)
    top = scores.topk(k, dim=1).indices
    return (top == torch.tensor(held_out)[:, None]).any(1).float().mean().item()


model = Factors()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(1, 31):
    total = 0.0
    batches = torch.randperm(len(pairs)).split(128)
    for idx in batches:
        user, song = pairs[idx].T
        other = negatives(user)
        margin = model(user, song) - model(user, other)
        norm = model.user(user).pow(2).sum(1) + model.song(song).pow(2).sum(1) + model.song(other).pow(2).sum(1)
        loss = -F.logsigmoid(margin).mean() + 0.01 * norm.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 5 == 0:
        print(f"epoch {epoch} bpr {total / len(batches):.4f} hit@20 {hit_rate(model):.4f}")
