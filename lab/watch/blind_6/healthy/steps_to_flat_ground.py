"""Sharpness-aware training: each step moves the weights uphill, takes the gradient there and moves them back."""
import torch
from sklearn.datasets import load_digits
from torch import nn

SEED = 139
RADIUS = 0.05
torch.manual_seed(SEED)
digits = load_digits()
order = torch.randperm(len(digits.target))
images = torch.tensor(digits.images / 16, dtype=torch.float32)[order][:, None]
labels = torch.tensor(digits.target)[order]
train_x, train_y, test_x, test_y = images[:1000], labels[:1000], images[1000:], labels[1000:]

model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
    nn.Flatten(), nn.Linear(32 * 16, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def gradients(x, y):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    return loss.item()


@torch.no_grad()
def climb():
    norm = torch.stack([parameter.grad.norm() for parameter in model.parameters()]).norm() + 1e-12
    moves = [parameter.grad * (RADIUS / norm) for parameter in model.parameters()]
    for parameter, move in zip(model.parameters(), moves):
        parameter.add_(move)
    return moves


for epoch in range(8):
    total = 0.0
    for index in torch.randperm(len(train_x)).split(25):
        total += gradients(train_x[index], train_y[index]) * len(index)
        moves = climb()
        gradients(train_x[index], train_y[index])
        with torch.no_grad():
            for parameter, move in zip(model.parameters(), moves):
                parameter.sub_(move)
        optimizer.step()
    with torch.no_grad():
        accuracy = (model(test_x).argmax(1) == test_y).float().mean()
    print(f"epoch {epoch + 1}: loss {total / len(train_x):.4f}, test accuracy {accuracy:.4f}")
