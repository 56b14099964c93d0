"""A small convolutional network with augmentation by cropping."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from data import Pictures


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc = nn.Linear(32 * 8 * 8, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


def evaluate(model, loader):
    model.eval()
    right = 0
    with torch.no_grad():
        for pictures, labels in loader:
            right += (model(pictures).argmax(1) == labels).sum().item()
    return right / len(loader.dataset)


def main():
    train = DataLoader(Pictures(512, 32, training=True), batch_size=64, shuffle=True)
    validation = DataLoader(Pictures(128, 32, training=False), batch_size=64)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(30):
        model.train()
        for pictures, labels in train:
            optimizer.zero_grad()
            F.cross_entropy(model(pictures), labels).backward()
            optimizer.step()
        print(epoch, evaluate(model, validation))


if __name__ == "__main__":
    main()
