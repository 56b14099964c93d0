"""The plain case: digits, a network with two hidden ReLU layers, Adam, and a validation after each epoch.

As is usual with ReLU, a sixth or more of the hidden units stay silent.
Should reach: val accuracy of at least 0.95.
"""

import torch
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
torch.set_num_threads(1)

digits = load_digits()
dataset = TensorDataset(torch.tensor(digits.data / 16.0, dtype=torch.float32), torch.tensor(digits.target))
train_set, val_set = random_split(dataset, [1437, 360])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
val_loader = DataLoader(val_set, batch_size=128)


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 128)
        self.fc2 = nn.Linear(128, 64)
        self.fc3 = nn.Linear(64, 10)

    def forward(self, x, count_silent=False):
        a = torch.relu(self.fc1(x))
        b = torch.relu(self.fc2(a))
        if count_silent:
            self.silent = torch.cat([a, b], 1).eq(0).all(0).float().mean().item()
        return self.fc3(b)


model = MLP()
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=5e-3)


def train():
    model.train()
    total_loss = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total_loss += loss.item()
    return total_loss / len(train_loader)


def evaluate():
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in val_loader:
            correct += (model(x).argmax(dim=1) == y).sum().item()
        model(dataset.tensors[0], count_silent=True)
    return correct / len(val_set)


for epoch in range(12):
    loss = train()
    accuracy = evaluate()
    print(f"Epoch {epoch + 1}/12 loss {loss:.4f} silent units {model.silent:.2f} val accuracy {accuracy:.4f}")
