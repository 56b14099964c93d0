"""Three cultivars of wine from thirteen measurements, a network with batch norm. Val accuracy reaches about 1.0."""

import torch
from sklearn.datasets import load_wine
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(6)


def layer(inputs, outputs):
    return [nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU()]


class WineNet(nn.Module):
    def __init__(self, width=24, depth=7):
        super().__init__()
        layers = layer(13, width)
        for _ in range(depth - 1):
            layers += layer(width, width)
        self.features = nn.Sequential(*layers)
        self.dropout = nn.Dropout(0.2)
        self.classifier = nn.Linear(width, 3)

    def forward(self, x):
        return self.classifier(self.dropout(self.features(x)))


def fit(model, loader, criterion, optimizer):
    model.train()
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def score(model, x, y):
    model.eval()
    return (model(x).argmax(dim=1) == y).float().mean().item()


wine = load_wine()
x = torch.tensor(wine.data, dtype=torch.float32)
y = torch.tensor(wine.target, dtype=torch.long)
order = torch.randperm(len(x))
train_rows, val_rows = order[:120], order[120:]

mean, std = x[train_rows].mean(dim=0), x[train_rows].std(dim=0)
train_x, train_y = (x[train_rows] - mean) / std, y[train_rows]
val_x, val_y = (x[val_rows] - mean) / std, y[val_rows]

loader = DataLoader(TensorDataset(train_x, train_y), batch_size=20, shuffle=True)
model = WineNet()
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

for epoch in range(30):
    loss = fit(model, loader, criterion, optimizer)
    if (epoch + 1) % 2 == 0:
        print(f"epoch {epoch + 1}  loss {loss:.4f}  val accuracy {score(model, val_x, val_y):.4f}")
