"""A small convolutional network for scikit-learn's digits."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, RandomSampler, Subset, TensorDataset, random_split

torch.manual_seed(0)
torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc1 = nn.Linear(32 * 4, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc2(x)


def train(model, loader, optimizer):
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
def test(model, loader):
    model.eval()
    loss, correct = 0.0, 0
    for images, labels in loader:
        output = model(images)
        loss += F.cross_entropy(output, labels, reduction="sum").item()
        correct += (output.argmax(1) == labels).sum().item()
    return loss / len(loader.dataset), correct / len(loader.dataset)


def main():
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    dataset = TensorDataset(images, torch.tensor(digits.target))
    train_set, val_set = random_split(dataset, [1400, 397])
    train_set = Subset(train_set, range(1400))
    sampler = RandomSampler(train_set, replacement=True, num_samples=1280)
    train_loader = DataLoader(train_set, batch_size=40, sampler=sampler)
    val_loader = DataLoader(val_set, batch_size=200)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(12):
        loss = train(model, train_loader, optimizer)
        val_loss, accuracy = test(model, val_loader)
        print(f"epoch {epoch:3d} loss {loss:.5f} val loss {val_loss:.4f} val accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
