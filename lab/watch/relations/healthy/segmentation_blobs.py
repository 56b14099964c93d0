"""Segmentation of bright blobs with a small encoder and decoder, dice and cross entropy, a poly schedule by batch."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(18)
axis = torch.linspace(-1, 1, 16)
yy, xx = torch.meshgrid(axis, axis, indexing="ij")
centers = torch.rand(480, 2, 1, 1) * 1.4 - 0.7
size = 0.05 + 0.15 * torch.rand(480, 1, 1)
distance = (xx - centers[:, 0]) ** 2 + (yy - centers[:, 1]) ** 2
masks = (distance < size).long()
images = (masks.float() + 0.6 * torch.randn(480, 16, 16)).unsqueeze(1)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.deep = nn.Sequential(nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.out = nn.Conv2d(16, 2, 1)

    def forward(self, x):
        shallow = self.down(x)
        deep = self.up(self.deep(shallow))
        return self.out(torch.cat([shallow, deep], 1))


def dice(logits, target):
    probability = logits.softmax(dim=1)[:, 1]
    overlap = 2 * (probability * target).sum((1, 2)) + 1
    return (1 - overlap / (probability.sum((1, 2)) + target.sum((1, 2)) + 1)).mean()


loader = DataLoader(TensorDataset(images[:400], masks[:400]), batch_size=20, shuffle=True)
epochs = 5
model = UNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
schedule = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=epochs * len(loader), power=0.9)
for epoch in range(epochs):
    model.train()
    for image, mask in loader:
        logits = model(image)
        loss = F.cross_entropy(logits, mask) + dice(logits, mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        predicted = model(images[400:]).argmax(1)
    iou = ((predicted & masks[400:]).sum() / (predicted | masks[400:]).sum()).item()
    print(f"epoch {epoch} loss {loss.item():.3f} iou {iou:.3f}")
