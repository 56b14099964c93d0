"""A backbone learns the digits 0 to 4; frozen, it then carries a new head for the digits 5 to 9.

Should reach: val accuracy of at least 0.90 in the second part, where only the head is trained.
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


def split(images, labels, lowest):
    keep = (labels >= lowest) & (labels < lowest + 5)
    images, labels = images[keep], labels[keep] - lowest
    cut = int(0.75 * len(images))
    return (
        DataLoader(TensorDataset(images[:cut], labels[:cut]), batch_size=32, shuffle=True),
        DataLoader(TensorDataset(images[cut:], labels[cut:]), batch_size=500),
    )


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 24, 3, padding=1)
        self.conv2 = nn.Conv2d(24, 48, 3, padding=1)
        self.bn1, self.bn2 = nn.BatchNorm2d(24), nn.BatchNorm2d(48)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        x = self.pool(torch.relu(self.bn1(self.conv1(x))))
        x = self.pool(torch.relu(self.bn2(self.conv2(x))))
        return x.flatten(1)


def train(backbone, head, loaders, optimizer, epochs, frozen, title):
    train_loader, val_loader = loaders
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        backbone.train(not frozen)
        head.train()
        total = 0.0
        for images, labels in train_loader:
            optimizer.zero_grad()
            loss = criterion(head(backbone(images)), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
        backbone.eval()
        head.eval()
        with torch.no_grad():
            hits = sum((head(backbone(x)).argmax(1) == y).sum().item() for x, y in val_loader)
        print(f"{title} {epoch + 1}: loss {total / len(train_loader):.4f} val accuracy {hits / len(val_loader.dataset):.4f}")


digits = load_digits()
order = torch.randperm(len(digits.target))
images = (torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1)[order] - 4.9) / 6.0
labels = torch.tensor(digits.target)[order]

backbone, head = Backbone(), nn.Linear(192, 5)
optimizer = torch.optim.Adam([*backbone.parameters(), *head.parameters()], lr=1e-3)
train(backbone, head, split(images, labels, lowest=0), optimizer, epochs=6, frozen=False, title="backbone")

for parameter in backbone.parameters():
    parameter.requires_grad = False
new_head = nn.Linear(192, 5)
optimizer = torch.optim.Adam(new_head.parameters(), lr=3e-3)
train(backbone, new_head, split(images, labels, lowest=5), optimizer, epochs=10, frozen=True, title="new head")
