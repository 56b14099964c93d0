"""Recommends books of a library from loans, with pairwise ranking; titles are hashed into a table."""
import zlib

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SEED = 19
READERS, TITLES, TASTES = 240, 320, 8
BUCKETS = 8192
rng = np.random.default_rng(SEED)
torch.manual_seed(SEED)

titles = [f"volume {number:04d}" for number in range(TITLES)]
taste_of_reader = rng.integers(TASTES, size=READERS)
taste_of_title = rng.integers(TASTES, size=TITLES)
loans, kept_back = [], {}
for reader in range(READERS):
    chance = np.where(taste_of_title == taste_of_reader[reader], 12.0, 1.0)
    chosen = rng.choice(TITLES, size=22, replace=False, p=chance / chance.sum())
    loans += [(reader, title) for title in chosen[:16]]
    kept_back[reader] = set(chosen[16:].tolist())
loans = torch.tensor(loans)
lent = torch.zeros(READERS, TITLES, dtype=torch.bool)
lent[loans[:, 0], loans[:, 1]] = True
bucket = torch.tensor([zlib.crc32(title.encode()) % BUCKETS for title in titles])


class Ranking(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.reader = nn.Embedding(READERS, width)
        self.title = nn.Embedding(BUCKETS, width)
        nn.init.normal_(self.reader.weight, std=0.1)
        nn.init.normal_(self.title.weight, std=0.1)

    def forward(self, reader, title):
        return (self.reader(reader) * self.title(bucket[title])).sum(-1)


model = Ranking()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-4)
for epoch in range(24):
    total = 0.0
    for index in torch.randperm(len(loans)).split(128):
        reader, title = loans[index].unbind(1)
        other = torch.randint(TITLES, title.shape)
        other = torch.where(lent[reader, other], torch.randint(TITLES, title.shape), other)
        loss = -F.logsigmoid(model(reader, title) - model(reader, other)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(index)
    if epoch % 4 == 3:
        with torch.no_grad():
            scores = model.reader.weight @ model.title.weight[bucket].T
        best = scores.masked_fill(lent, -torch.inf).topk(20).indices.tolist()
        recall = np.mean([len(kept_back[reader] & set(best[reader])) / 6 for reader in range(READERS)])
        print(f"epoch {epoch + 1}: loss {total / len(loans):.4f}, recall at 20 {recall:.4f}")
