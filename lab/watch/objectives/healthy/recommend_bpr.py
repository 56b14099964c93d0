"""Recommends songs from implicit feedback with Bayesian personalised ranking."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(11)
torch.set_num_threads(1)
random = np.random.default_rng(3)
LISTENERS, SONGS = 150, 90
taste = random.normal(size=(LISTENERS, 4)) @ random.normal(size=(4, SONGS))
heard = taste > np.quantile(taste, 0.85, axis=1, keepdims=True)
hidden = heard & (random.random(heard.shape) < 0.25)
known = heard & ~hidden


class Listens(Dataset):
    def __init__(self) -> None:
        self.pairs = np.argwhere(known)

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> tuple[int, int, int]:
        listener, song = self.pairs[index]
        other = random.integers(SONGS)
        while known[listener, other]:
            other = random.integers(SONGS)
        return int(listener), int(song), int(other)


class Factors(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.listeners = nn.Embedding(LISTENERS, 16)
        self.songs = nn.Embedding(SONGS, 16)
        self.popularity = nn.Embedding(SONGS, 1)
        for table in (self.listeners, self.songs):
            nn.init.normal_(table.weight, std=0.1)
        nn.init.zeros_(self.popularity.weight)

    def forward(self, listener: torch.Tensor, song: torch.Tensor) -> torch.Tensor:
        match = (self.listeners(listener) * self.songs(song)).sum(-1)
        return match + self.popularity(song).squeeze(-1)


def hits(model: Factors) -> float:
    with torch.no_grad():
        scores = model.listeners.weight @ model.songs.weight.T + model.popularity.weight.T
    scores = scores.numpy()
    scores[known] = -np.inf
    best = np.argsort(-scores, axis=1)[:, :10]
    return float(np.mean([hidden[row, best[row]].sum() / max(1, min(10, hidden[row].sum())) for row in range(LISTENERS)]))


loader = DataLoader(Listens(), batch_size=128, shuffle=True)
model = Factors()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=1e-3)
for epoch in range(12):
    losses = []
    for listener, liked, other in loader:
        better, worse = model(listener, liked), model(listener, other)
        loss = nn.functional.softplus(worse - better).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"epoch {epoch + 1} loss {np.mean(losses):.4f} recall@10 {hits(model):.4f}")
