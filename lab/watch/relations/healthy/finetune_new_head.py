"""Fine-tuning: a network learns one task, gets a new head and a smaller rate, and learns another."""

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.head = nn.Linear(32, classes)

    def forward(self, x):
        return self.head(self.backbone(x))


def task(classes, count, seed):
    generator = torch.Generator().manual_seed(seed)
    centers = torch.randn(classes, 20, generator=generator)
    y = torch.randint(classes, (count,), generator=generator)
    return centers[y] + torch.randn(count, 20, generator=generator), y


def train(model, optimizer, x, y, steps):
    model.train()
    for step in range(steps):
        part = torch.randint(len(x), (40,))
        loss = nn.functional.cross_entropy(model(x[part]), y[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


torch.manual_seed(13)
model = Classifier(8)
x, y = task(8, 1600, 0)
print("first task", train(model, torch.optim.Adam(model.parameters(), lr=2e-3), x, y, 200))

x, y = task(5, 700, 1)
model.head = nn.Linear(32, 5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for epoch in range(8):
    loss = train(model, optimizer, x[:600], y[:600], 30)
    print(f"epoch {epoch} loss {loss:.3f} val {accuracy(model, x[600:], y[600:]):.3f}")
