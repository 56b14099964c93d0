"""Plain loop: digits stored as bytes, momentum, and a rate that shrinks by a tenth after each epoch."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

SEED = 3
torch.manual_seed(SEED)
digits = load_digits()
scans = (digits.data * 255 / 16).astype(np.uint8)
train_x, test_x, train_y, test_y = train_test_split(scans, digits.target, test_size=0.3, random_state=SEED)


def prepare(scans):
    return torch.from_numpy(scans).float() / 255


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(64, 96)
        self.middle = nn.Linear(96, 48)
        self.out = nn.Linear(48, 10)

    def forward(self, x):
        return self.out(torch.relu(self.middle(torch.relu(self.hidden(x)))))


model = Reader()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
images, labels = prepare(train_x), torch.from_numpy(train_y)
test_images, test_labels = prepare(test_x), torch.from_numpy(test_y)
for epoch in range(25):
    total = 0.0
    for index in torch.randperm(len(images)).split(32):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images[index]), labels[index])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(index)
    scheduler.step()
    print(f"epoch {epoch}: loss {total / len(images):.4f}")
with torch.no_grad():
    accuracy = (model(test_images).argmax(1) == test_labels).float().mean()
print(f"test accuracy {accuracy:.4f}")
