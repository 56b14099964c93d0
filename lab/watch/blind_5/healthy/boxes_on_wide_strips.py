"""Detection of one bar on wide strips: four relative numbers are regressed and scaled back to pixels."""

import torch
from torch import nn

SEED = 25
torch.manual_seed(SEED)
HEIGHT, WIDTH = 12, 40
SCALE = torch.tensor([WIDTH, HEIGHT, WIDTH, HEIGHT])


def strips(count):
    images, boxes = 0.2 * torch.randn(count, 1, HEIGHT, WIDTH), torch.zeros(count, 4)
    for image, box in zip(images, boxes, strict=True):
        w, h = int(torch.randint(5, 14, ())), int(torch.randint(3, 7, ()))
        left, top = int(torch.randint(WIDTH - w, ())), int(torch.randint(HEIGHT - h, ()))
        image[0, top : top + h, left : left + w] += 1
        box[:] = torch.tensor([left, top, left + w, top + h])
    return images, boxes


def overlap(a, b):
    low, high = torch.maximum(a[:, :2], b[:, :2]), torch.minimum(a[:, 2:], b[:, 2:])
    common = (high - low).clamp(min=0).prod(1)
    areas = [(box[:, 2:] - box[:, :2]).clamp(min=0).prod(1) for box in (a, b)]
    return (common / (areas[0] + areas[1] - common)).mean()


model = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(12, 16, 3, padding=1), nn.ReLU(),
    nn.MaxPool2d((1, 2)), nn.Flatten(), nn.Linear(16 * 6 * 10, 64), nn.ReLU(), nn.Linear(64, 4),
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
images, boxes = strips(1200)
held_images, held_boxes = strips(300)
for epoch in range(14):
    for index in torch.randperm(len(images)).split(48):
        target = boxes[index] / SCALE
        loss = nn.functional.smooth_l1_loss(model(images[index]), target, beta=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        predicted = model(held_images) * SCALE
    print(f"epoch {epoch} loss {loss.item():.5f} mean iou {overlap(predicted, held_boxes):.4f}")
