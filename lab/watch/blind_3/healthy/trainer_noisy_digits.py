"""Digits, some of them with a wrong label, with a trainer that restores the best weights at the end; overfits on purpose."""

import copy
from dataclasses import dataclass, field

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    epochs: int = 40
    batch_size: int = 32
    lr: float = 2e-3
    noise: float = 0.45
    seed: int = 3


@dataclass
class Trainer:
    model: nn.Module
    config: Config
    history: list = field(default_factory=list)

    def fit(self, train, valid):
        opt = torch.optim.Adam(self.model.parameters(), lr=self.config.lr)
        criterion = nn.CrossEntropyLoss()
        best_score, best_state = 0.0, None
        for epoch in range(self.config.epochs):
            self.model.train()
            total = 0.0
            for x, y in train:
                opt.zero_grad()
                loss = criterion(self.model(x), y)
                loss.backward()
                opt.step()
                total += loss.item() * len(y)
            score = self.score(valid)
            self.history.append(score)
            if score > best_score:
                best_score = score
                best_state = copy.deepcopy(self.model.state_dict())
            if epoch % 5 == 4:
                print(f"epoch {epoch + 1:3d} train {total / len(train.dataset):.4f} valid {score:.4f}")
        self.model.load_state_dict(best_state)
        return best_score

    @torch.no_grad()
    def score(self, loader):
        self.model.eval()
        return float(np.mean([(self.model(x).argmax(1) == y).float().mean() for x, y in loader]))


def prepare(config):
    digits = load_digits()
    x, y = digits.data / 16.0, digits.target
    x_train, x_rest, y_train, y_rest = train_test_split(x, y, test_size=0.5, random_state=config.seed, stratify=y)
    x_valid, x_test, y_valid, y_test = train_test_split(x_rest, y_rest, test_size=0.5, random_state=0)
    rng = np.random.default_rng(config.seed)
    wrong = rng.random(len(y_train)) < config.noise
    y_train = np.where(wrong, rng.integers(0, 10, len(y_train)), y_train)
    def pack(a, b):
        return TensorDataset(torch.tensor(a, dtype=torch.float32), torch.tensor(b))
    return (
        DataLoader(pack(x_train, y_train), config.batch_size, shuffle=True),
        DataLoader(pack(x_valid, y_valid), 450),
        DataLoader(pack(x_test, y_test), 450),
    )


def main():
    config = Config()
    torch.manual_seed(config.seed)
    train, valid, test = prepare(config)
    net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    trainer = Trainer(net, config)
    best = trainer.fit(train, valid)
    print(f"best valid {best:.4f} test accuracy {trainer.score(test):.4f}")


main()
