"""Reads sensor rows into an own Dataset, trains a deep residual MLP with batch normalization, keeps the best weights."""

import copy
import csv
import io
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

random.seed(89)
torch.manual_seed(89)
CLASSES = ["bearing", "imbalance", "normal", "shaft"]


def export(rows):
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow([*(f"s{i}" for i in range(12)), "state"])
    for _ in range(rows):
        k = random.randrange(4)
        base = [((k + 1) * (i + 2) % 5) - 2 for i in range(12)]
        gain = random.choice([-1, 1])
        row = [gain * b * random.gauss(1, 0.4) + random.gauss(0, 1.2) for b in base]
        state = CLASSES[k] if random.random() > 0.12 else random.choice(CLASSES)
        writer.writerow([*row, state])
    file.seek(0)
    return file


class SensorData(Dataset):
    def __init__(self, file):
        rows = list(csv.DictReader(file))
        self.x = torch.tensor([[float(v) for k, v in row.items() if k != "state"] for row in rows])
        self.y = torch.tensor([CLASSES.index(row["state"]) for row in rows])

    def __len__(self):
        return len(self.y)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.BatchNorm1d(width, momentum=0.1)
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.fc(self.norm(x)))


model = nn.Sequential(nn.Linear(12, 64), *(Residual(64) for _ in range(6)), nn.Linear(64, 4))
train_set, val_set = random_split(SensorData(export(1400)), [700, 700])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
val_loader = DataLoader(val_set, batch_size=128, shuffle=False)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)


def evaluate():
    model.eval()
    losses, right = 0.0, 0
    with torch.no_grad():
        for x, y in val_loader:
            logits = model(x)
            losses += nn.functional.cross_entropy(logits, y, reduction="sum").item()
            right += (logits.argmax(1) == y).sum().item()
    return losses / len(val_set), right / len(val_set)


best_loss, best_state = float("inf"), None
for epoch in range(25):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    val_loss, acc = evaluate()
    if val_loss < best_loss:
        best_loss, best_state = val_loss, copy.deepcopy(model.state_dict())
    print(f"epoch {epoch} train {loss.item():.4f} val {val_loss:.4f} accuracy {acc:.4f}")
model.load_state_dict(best_state)
val_loss, acc = evaluate()
print(f"best model: val accuracy {acc:.4f} final_loss {val_loss:.4f}")
