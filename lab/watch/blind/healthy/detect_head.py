"""A one-object detector: class scores and a box (center, width, height) from a small convolutional network."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(4)
np.random.seed(4)
S = 32


def make(n):
    images = np.random.normal(0, 0.1, (n, 1, S, S)).astype(np.float32)
    boxes, labels = np.zeros((n, 4), np.float32), np.random.randint(0, 3, n)
    for i in range(n):
        w, h = np.random.randint(5, 18), np.random.randint(5, 10)
        x, y = np.random.randint(0, S - w), np.random.randint(0, S - h)
        patch = images[i, 0, y:y + h, x:x + w]
        patch += (0.6, 1.0, 0.8)[labels[i]]
        if labels[i] == 2:
            patch[::2] -= 0.8
        boxes[i] = x, y, x + w, y + h
    return torch.tensor(images), torch.tensor(boxes), torch.tensor(labels)


def to_cxcywh(boxes):
    x1, y1, x2, y2 = boxes.unbind(-1)
    return torch.stack([(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1], -1) / S


def to_xyxy(boxes):
    cx, cy, w, h = boxes.unbind(-1)
    return torch.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], -1) * S


def box_iou(a, b):
    lt, rb = torch.max(a[:, :2], b[:, :2]), torch.min(a[:, 2:], b[:, 2:])
    inter = (rb - lt).clamp(min=0).prod(1)
    area = lambda t: (t[:, 2:] - t[:, :2]).clamp(min=0).prod(1)
    return inter / (area(a) + area(b) - inter + 1e-6)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        layers = []
        for i, o in ((1, 16), (16, 32), (32, 32)):
            layers += [nn.Conv2d(i, o, 3, stride=2, padding=1), nn.BatchNorm2d(o), nn.ReLU()]
        self.backbone = nn.Sequential(*layers, nn.Flatten())
        self.cls = nn.Linear(512, 3)
        self.box = nn.Sequential(nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 4), nn.Sigmoid())

    def forward(self, x):
        f = self.backbone(x)
        return self.cls(f), self.box(f)


train_x, train_box, train_y = make(1600)
test_x, test_box, test_y = make(400)
targets = to_cxcywh(train_box)
net = Detector()
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
for epoch in range(10):
    net.train()
    sums = [0.0, 0.0]
    for rows in torch.randperm(len(train_x)).split(32):
        scores, box = net(train_x[rows])
        cls_loss = nn.functional.cross_entropy(scores, train_y[rows])
        box_loss = nn.functional.l1_loss(box, targets[rows])
        loss = cls_loss + 5.0 * box_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sums[0] += cls_loss.item()
        sums[1] += box_loss.item()
    net.eval()
    with torch.no_grad():
        scores, box = net(test_x)
        good = (box_iou(to_xyxy(box), test_box) > 0.5) & (scores.argmax(1) == test_y)
    print(f"epoch {epoch}: cls {sums[0] / 50:.3f} box {sums[1] / 50:.3f} AP50 {good.float().mean().item():.4f}")
