"""One trunk, two heads: the age of a person (regression) and the expression (5 classes) from face embeddings."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    lr: float = 2e-3
    epochs: int = 12
    batch_size: int = 64
    age_weight: float = 1.0
    seed: int = 19


class TwoHeads(nn.Module):
    def __init__(self, features=40):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(features, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU())
        self.age = nn.Linear(48, 1)
        self.expression = nn.Linear(48, 5)

    def forward(self, x):
        h = self.trunk(x)
        return self.age(h).squeeze(-1), self.expression(h)


class Trainer:
    def __init__(self, cfg: Config):
        torch.manual_seed(cfg.seed)
        self.cfg = cfg
        self.mix = torch.randn(8, 40)
        self.proto = torch.randn(5, 8)
        self.train_data, self.val_data = self.make(2400), self.make(600)
        self.age_mean, self.age_std = self.train_data[1].mean(), self.train_data[1].std()
        self.model = TwoHeads()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=cfg.lr * 10, momentum=0.9)

    def make(self, n):
        age = 18 + 60 * torch.rand(n)
        kind = torch.randint(0, 5, (n,))
        hidden = self.proto[kind] + 0.6 * torch.randn(n, 8)
        hidden[:, 0] += (age - 48) / 12
        return torch.tanh(hidden @ self.mix * 0.3) + 0.1 * torch.randn(n, 40), age, kind

    def loss(self, x, age, kind):
        age_pred, scores = self.model(x)
        age_target = (age - self.age_mean) / self.age_std
        age_loss = nn.functional.mse_loss(age_pred, age_target)
        return self.cfg.age_weight * age_loss + nn.functional.cross_entropy(scores, kind)

    def fit(self):
        x, age, kind = self.train_data
        for epoch in range(self.cfg.epochs):
            self.model.train()
            for rows in torch.randperm(len(x)).split(self.cfg.batch_size):
                loss = self.loss(x[rows], age[rows], kind[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            print(f"[epoch {epoch}] train loss {loss.item():.4f} val accuracy {self.validate():.4f}")

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        x, _, kind = self.val_data
        return (self.model(x)[1].argmax(1) == kind).float().mean().item()


if __name__ == "__main__":
    Trainer(Config()).fit()
