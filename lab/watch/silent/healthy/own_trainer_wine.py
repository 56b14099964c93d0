"""A Trainer class with callbacks, early stopping and a head that is set for the task: kinds of wine."""

import copy

import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(8)
features, kinds = load_wine(return_X_y=True)
a, b, c, d = train_test_split(features, kinds, test_size=0.3, random_state=8, stratify=kinds)
scaler = StandardScaler().fit(a)
train = TensorDataset(torch.tensor(scaler.transform(a)).float(), torch.tensor(c))
valid = TensorDataset(torch.tensor(scaler.transform(b)).float(), torch.tensor(d))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(13, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 32), nn.ReLU()
        )
        self.head = nn.Linear(32, 10)

    def set_head(self, classes):
        self.head = nn.Linear(32, classes)

    def forward(self, x):
        return self.head(self.body(x))


class Trainer:
    def __init__(self, model, train, valid, lr=2e-3, patience=15):
        self.model, self.patience = model, patience
        self.train_loader = DataLoader(train, batch_size=16, shuffle=True)
        self.valid_loader = DataLoader(valid, batch_size=64)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.criterion = nn.CrossEntropyLoss()
        self.best, self.best_state = 1e9, None

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.train_loader)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        losses = [self.criterion(self.model(x), y).item() for x, y in self.valid_loader]
        return sum(losses) / len(losses)

    def fit(self, epochs):
        waited = 0
        for epoch in range(epochs):
            train_loss, valid_loss = self.train_epoch(), self.validate()
            print(f"epoch {epoch} train {train_loss:.3f} valid {valid_loss:.3f}")
            waited = 0 if valid_loss < self.best else waited + 1
            if valid_loss < self.best:
                self.best, self.best_state = valid_loss, copy.deepcopy(self.model.state_dict())
            if waited > self.patience:
                break
        self.model.load_state_dict(self.best_state)


model = Net()
model.set_head(3)
trainer = Trainer(model, train, valid)
trainer.fit(40)
print("valid", trainer.validate())
