"""Finds boxes of one to three rectangles: a heat map of centers with focal loss, and sizes where the centers are.

Should reach: val recall at overlap 0.5 of at least 0.8; an untrained network finds none.
"""
import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(56)
SIDE, CELL = 32, 4
GRID = SIDE // CELL


def scenes(count):
    images, heat, sizes = 0.2 * torch.randn(count, 1, SIDE, SIDE), torch.zeros(count, GRID, GRID), torch.zeros(count, 2, GRID, GRID)
    for i in range(count):
        for _ in range(int(torch.randint(1, 4, ()))):
            row, column = torch.randint(GRID, (2,)).tolist()
            if heat[i, max(row - 2, 0) : row + 3, max(column - 2, 0) : column + 3].sum():
                continue
            height, width = (2 + 3 * torch.rand(2)).round().int().tolist()
            r, c = row * CELL + 2, column * CELL + 2
            images[i, 0, max(r - height, 0) : r + height, max(c - width, 0) : c + width] += 0.6 + 0.4 * torch.rand(())
            heat[i, row, column] = 1
            sizes[i, :, row, column] = torch.tensor([height, width]) / 4
    return images, heat, sizes


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        )  # fmt: skip
        self.center = nn.Conv2d(32, 1, 1)
        self.size = nn.Conv2d(32, 2, 1)
        nn.init.constant_(self.center.bias, -3.0)  # centers are rare

    def forward(self, images):
        features = self.backbone(images)
        return self.center(features).squeeze(1), self.size(features)


def focal(logits, target):
    p = torch.sigmoid(logits)
    miss = -((1 - p) ** 2) * F.logsigmoid(logits) * target
    false = -(p**2) * F.logsigmoid(-logits) * (1 - target)
    return (miss + false).sum() / target.sum().clamp(min=1)


def recall(center, size, heat, sizes):
    found = (center > 0) & (heat > 0)
    h, w = torch.min(size, sizes).clamp(min=0).unbind(1), torch.max(size, sizes).unbind(1)
    overlap = (h[0] * h[1]) / (w[0] * w[1]).clamp(min=1e-6)
    return ((overlap > 0.5) & found).sum().item() / heat.sum().item()


images, heat, sizes = scenes(800)
val_images, val_heat, val_sizes = scenes(200)
model = Detector()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
for epoch in range(12):
    model.train()
    center_total, size_total = 0.0, 0.0
    for rows in torch.randperm(len(images)).split(25):
        center, size = model(images[rows])
        center_loss = focal(center, heat[rows])
        size_loss = (F.l1_loss(size, sizes[rows], reduction="none") * heat[rows, None]).sum() / heat[rows].sum()
        optimizer.zero_grad()
        (center_loss + size_loss).backward()
        optimizer.step()
        center_total, size_total = center_total + center_loss.item(), size_total + size_loss.item()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        score = recall(*model(val_images), val_heat, val_sizes)
    print(f"epoch {epoch + 1} center {center_total / 32:.3f} size {size_total / 32:.3f} val recall at overlap 0.5: {score:.4f}")
