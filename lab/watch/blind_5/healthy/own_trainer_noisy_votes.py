"""An own Trainer class: digits whose training labels are votes, a third of them random; the best epoch is restored."""

import copy

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

SEED = 21
torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)


def load():
    data = load_digits()
    x, y = (data.data / 16).astype(np.float32), data.target.astype(np.int64)
    order = rng.permutation(len(x))
    x, y = x[order], y[order]
    votes = y[:500].copy()
    random_votes = rng.random(500) < 0.35
    votes[random_votes] = rng.integers(0, 10, random_votes.sum())
    parts = (x[:500], votes), (x[500:900], y[500:900]), (x[900:], y[900:])
    return [(torch.from_numpy(a), torch.from_numpy(b)) for a, b in parts]


class Trainer:
    def __init__(self, model, optimizer, epochs):
        self.model, self.optimizer, self.epochs = model, optimizer, epochs
        self.best_score, self.best_state = -1.0, None

    def fit(self, train, validation):
        for epoch in range(self.epochs):
            self.model.train()
            for index in torch.randperm(len(train[0])).split(25):
                loss = nn.functional.cross_entropy(self.model(train[0][index]), train[1][index])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            score = self.score(validation)
            if score > self.best_score:
                self.best_score = score
                self.best_state = copy.deepcopy(self.model.state_dict())
            if epoch % 5 == 0:
                print(f"epoch {epoch} train loss {loss.item():.4f} val accuracy {score:.4f}")
        self.model.load_state_dict(self.best_state)

    @torch.no_grad()
    def score(self, data):
        self.model.eval()
        return (self.model(data[0]).argmax(1) == data[1]).float().mean().item()


train, validation, test = load()
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
trainer = Trainer(model, torch.optim.Adam(model.parameters(), lr=2e-3), epochs=50)
trainer.fit(train, validation)
print(f"best val accuracy {trainer.best_score:.4f}")
print(f"test accuracy {trainer.score(test):.4f}")
