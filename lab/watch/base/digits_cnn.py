"""Handwritten digits with a convolutional network and small shifts as augmentation. Val accuracy reaches about 0.98."""

import random

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
random.seed(0)
torch.manual_seed(0)


class Digits(Dataset):
    def __init__(self, images, labels, augment=False):
        self.images = images
        self.labels = labels
        self.augment = augment

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = self.images[index]
        if self.augment:
            image = torch.roll(image, shifts=random.choice([-1, 0, 0, 1]), dims=2)
        return image, self.labels[index]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(32)
        self.fc1 = nn.Linear(32 * 2 * 2, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc2(x)


def train_epoch(model, loader, optimizer):
    model.train()
    total = 0.0
    for images, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    correct = count = 0
    for images, labels in loader:
        correct += (model(images).argmax(1) == labels).sum().item()
        count += len(labels)
    return correct / count


data = load_digits()
images = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1)
labels = torch.tensor(data.target)
order = torch.randperm(len(images))
train_index = order[:1300]
val_index = order[1300:]

train_set = Digits(images[train_index] / 16, labels[train_index], augment=True)
val_set = Digits(images[val_index] / 16, labels[val_index])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
val_loader = DataLoader(val_set, batch_size=100)

model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(8):
    train_loss = train_epoch(model, train_loader, optimizer)
    accuracy = evaluate(model, val_loader)
    print(f"Epoch {epoch + 1}/8 - loss: {train_loss:.4f} - val accuracy: {accuracy:.4f}")
