"""A residual network of 16 blocks with batch normalization, AdamW with warmup and a cosine decay.

Should reach: val accuracy of at least 0.95.
"""

import math

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

torch.manual_seed(0)
torch.set_num_threads(1)


class ResidualBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        nn.init.zeros_(self.bn2.weight)  # each block starts as the identity

    def forward(self, x):
        out = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(x + self.bn2(self.conv2(out)))


class ResNet(nn.Module):
    def __init__(self, blocks=16, channels=12):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, channels, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU())
        self.body = nn.Sequential(*[ResidualBlock(channels) for _ in range(blocks)])
        self.head = nn.Linear(channels * 4, 10)

    def forward(self, x):
        x = self.body(self.stem(x))
        return self.head(nn.functional.adaptive_avg_pool2d(x, 2).flatten(1))


X, y = load_digits(return_X_y=True)
X = torch.tensor(X, dtype=torch.float32).view(-1, 1, 8, 8).sub(4.88).div(6.02)
X_train, X_test, y_train, y_test = train_test_split(X, torch.tensor(y), test_size=0.2, random_state=1)

epochs, batch_size, warmup = 7, 64, 30
steps = epochs * math.ceil(len(X_train) / batch_size)


def rate(step):
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))


model = ResNet()
decay = [p for p in model.parameters() if p.ndim > 1]
no_decay = [p for p in model.parameters() if p.ndim <= 1]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05}, {"params": no_decay, "weight_decay": 0.0}], lr=4e-3)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)

for epoch in range(epochs):
    model.train()
    losses = []
    for index in torch.randperm(len(X_train)).split(batch_size):
        loss = nn.functional.cross_entropy(model(X_train[index]), y_train[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        val_accuracy = (model(X_test).argmax(1) == y_test).float().mean().item()
    print(f"epoch {epoch:2d} lr {scheduler.get_last_lr()[0]:.5f} loss {sum(losses) / len(losses):.4f} val accuracy {val_accuracy:.4f}")
