"""A Trainer class with callbacks, checkpoints of the best epoch, and validation data stored class by class."""

import copy

import torch
from sklearn.datasets import load_wine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(27)
torch.set_num_threads(1)


class Trainer:
    def __init__(self, model, optimizer, criterion, epochs):
        self.model, self.optimizer, self.criterion, self.epochs = model, optimizer, criterion, epochs
        self.best, self.best_loss = None, float("inf")

    def training_step(self, batch):
        x, y = batch
        return self.criterion(self.model(x), y)

    def run_epoch(self, loader):
        self.model.train()
        for batch in loader:
            self.optimizer.zero_grad()
            loss = self.training_step(batch)
            loss.backward()
            self.optimizer.step()

    @torch.no_grad()
    def validate(self, loader):
        self.model.eval()
        loss = right = count = 0
        for x, y in loader:
            output = self.model(x)
            loss += self.criterion(output, y).item() * len(x)
            right += (output.argmax(1) == y).sum().item()
            count += len(x)
        return loss / count, right / count

    def fit(self, train, val):
        for epoch in range(self.epochs):
            self.run_epoch(train)
            loss, accuracy = self.validate(val)
            if loss < self.best_loss:
                self.best, self.best_loss = copy.deepcopy(self.model.state_dict()), loss
            print(f"epoch {epoch} val loss {loss:.4f} val accuracy {accuracy:.4f}")


wine = load_wine()
x = torch.tensor(wine.data, dtype=torch.float32)
y = torch.tensor(wine.target)
order = torch.randperm(len(x))
train, val = order[:130], order[130:].sort().values
mean, std = x[train].mean(0), x[train].std(0)
x = (x - mean) / std
model = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 3))
trainer = Trainer(model, torch.optim.AdamW(model.parameters(), lr=3e-3), nn.CrossEntropyLoss(), 15)
trainer.fit(
    DataLoader(TensorDataset(x[train], y[train]), batch_size=16, shuffle=True),
    DataLoader(TensorDataset(x[val], y[val]), batch_size=16),
)
