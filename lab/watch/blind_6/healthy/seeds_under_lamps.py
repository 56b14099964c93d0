"""Tells species of seeds apart in photographs whose brightness differs from lamp to lamp."""
import torch
from torch import nn

SEED = 113
SIDE = 16
torch.manual_seed(SEED)


def photographs(count):
    label = torch.randint(5, (count,))
    grid = torch.linspace(-1, 1, SIDE)
    turn = torch.rand(count) * 3.1416
    long = torch.tensor([0.8, 0.6, 0.45, 0.7, 0.35])[label][:, None, None]
    wide = torch.tensor([0.25, 0.55, 0.2, 0.4, 0.35])[label][:, None, None]
    y, x = torch.meshgrid(grid, grid, indexing="ij")
    along = turn.cos()[:, None, None] * x + turn.sin()[:, None, None] * y
    across = turn.cos()[:, None, None] * y - turn.sin()[:, None, None] * x
    seed = torch.sigmoid(12 * (1 - (along / long) ** 2 - (across / wide) ** 2))
    lamp = 3 + torch.rand(count, 1, 1)
    return (lamp + 2 * seed + 0.3 * torch.randn(count, SIDE, SIDE))[:, None], label


def block(inside, outside, stride):
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, stride, 1, bias=False),
        nn.BatchNorm2d(outside, eps=1e-5, momentum=0.1),
        nn.ReLU(inplace=True),
    )


model = nn.Sequential(
    block(1, 16, 1), block(16, 24, 2), block(24, 32, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 5)
)
images, labels = photographs(1000)
test_images, test_labels = photographs(400)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=8 * 25)
for epoch in range(8):
    model.train()
    total = 0.0
    for index in torch.randperm(len(images)).split(40):
        loss = nn.functional.cross_entropy(model(images[index]), labels[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item() * len(index)
    model.eval()
    with torch.no_grad():
        accuracy = (model(test_images).argmax(1) == test_labels).float().mean()
    print(f"epoch {epoch + 1}: loss {total / len(images):.4f}, test accuracy {accuracy:.4f}")
