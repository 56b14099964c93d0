"""Oriented textures, small residual network, evaluated by an exponential moving average of the weights; lr warms up from zero."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(11)
CLASSES, N_TRAIN, N_TEST, STEPS, BATCH = 6, 1200, 400, 240, 48


def make(n):
    y = torch.randint(CLASSES, (n,))
    angle = y * math.pi / CLASSES + 0.1 * torch.randn(n)
    phase = 2 * math.pi * torch.rand(n)
    grid = torch.linspace(-1, 1, 20)
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    wave = torch.cos(8 * (xx * angle.cos()[:, None, None] + yy * angle.sin()[:, None, None]) + phase[:, None, None])
    contrast = 40 + 40 * torch.rand(n, 1, 1)
    return (128 + contrast * wave + 45 * torch.randn(n, 20, 20)).clamp(0, 255)[:, None], y


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv1 = nn.Conv2d(c, c, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(c)
        self.conv2 = nn.Conv2d(c, c, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(c)

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)))
        return F.relu(x + self.bn2(self.conv2(h)))


class Net(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, c, 5, stride=2, padding=2, bias=False), nn.BatchNorm2d(c), nn.ReLU())
        self.blocks = nn.Sequential(Block(c), Block(c))
        self.head = nn.Linear(c, CLASSES)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


class EMA:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.lerp_(p, 1 - self.decay)
        for s, b in zip(self.shadow.buffers(), model.buffers()):
            s.copy_(b)


def normalize(images):
    return (images - 128.0) / 64.0


x_train, y_train = make(N_TRAIN)
x_test, y_test = make(N_TEST)
model = Net()
ema = EMA(model, decay=0.97)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
warmup = 24
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer,
    lambda step: step / warmup if step < warmup else 0.5 * (1 + math.cos(math.pi * (step - warmup) / (STEPS - warmup))),
)
for step in range(STEPS):
    idx = torch.randint(N_TRAIN, (BATCH,))
    images = normalize(x_train[idx])
    loss = F.cross_entropy(model(images), y_train[idx], label_smoothing=0.05)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    ema.update(model)
    if (step + 1) % 40 == 0:
        with torch.no_grad():
            accuracy = (ema.shadow(normalize(x_test)).argmax(1) == y_test).float().mean()
        print(f"step {step + 1} lr {scheduler.get_last_lr()[0]:.4f} loss {loss.item():.3f} ema_acc {accuracy.item():.4f}")
