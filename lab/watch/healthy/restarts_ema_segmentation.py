"""Segmentation of disks in noisy pictures: cosine schedule with warm restarts; a moving average of the weights counts.

The loss rises a little after each restart.
Should reach: val IoU of at least 0.95.
"""

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn

torch.manual_seed(20)
torch.set_num_threads(1)
SIZE = 24


def pictures(count):
    """Two disks of random place, size and brightness on a sloping background."""
    rows, columns = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    mask = torch.zeros(count, SIZE, SIZE, dtype=torch.bool)
    image = 0.3 * torch.randn(count, 1, 1) * (rows / SIZE - 0.5)
    for _ in range(2):
        center = 4 + 16 * torch.rand(2, count, 1, 1)
        radius = 2.5 + 3 * torch.rand(count, 1, 1)
        disk = (rows - center[0]) ** 2 + (columns - center[1]) ** 2 < radius**2
        image = torch.where(disk, 0.8 + 0.5 * torch.rand(count, 1, 1), image)
        mask |= disk
    image = image + 0.3 * torch.randn(image.shape)
    return (image.unsqueeze(1) - 0.25) / 0.55, mask.float().unsqueeze(1)


def double(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
    )


class SmallUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.bottom, self.up = double(1, 8), double(8, 16), double(24, 8)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        skip = self.down(x)
        deep = self.bottom(nn.functional.max_pool2d(skip, 2))
        deep = nn.functional.interpolate(deep, scale_factor=2.0)
        return self.out(self.up(torch.cat([skip, deep], dim=1)))


def dice_loss(logits, mask):
    p = logits.sigmoid()
    overlap = 2 * (p * mask).sum((1, 2, 3)) + 1
    return (1 - overlap / (p.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)).mean()


@torch.no_grad()
def iou(model, images, masks):
    model.eval()
    predicted = model(images) > 0
    masks = masks > 0.5
    return ((predicted & masks).sum() / (predicted | masks).sum()).item()


train_x, train_y = pictures(600)
val_x, val_y = pictures(150)
model = SmallUNet()
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.95))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=3, eta_min=1e-3)
batches = len(train_x) // 30

for epoch in range(9):
    model.train()
    order = torch.randperm(len(train_x))
    total = 0.0
    for i in range(batches):
        index = order[30 * i : 30 * i + 30]
        logits = model(train_x[index])
        loss = nn.functional.binary_cross_entropy_with_logits(logits, train_y[index]) + 0.5 * dice_loss(logits, train_y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update_parameters(model)
        scheduler.step(epoch + (i + 1) / batches)
        total += loss.item()
    update_bn(train_x.split(100), ema)
    print(
        f"epoch {epoch} train loss {total / batches:.4f} "
        f"IoU of the last weights {iou(model, val_x, val_y):.4f} val IoU {iou(ema, val_x, val_y):.4f}"
    )
