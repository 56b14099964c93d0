"""Finds two parts in an image: each cell of a grid tells whether a part is centred in it, and its box."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SEED = 5
CELLS, STRIDE = 6, 8
SIZE = CELLS * STRIDE
rng = np.random.default_rng(SEED)
torch.manual_seed(SEED)


class Parts(torch.utils.data.Dataset):
    def __init__(self, count):
        self.images, self.boxes = [], []
        for _ in range(count):
            image = rng.normal(0, 0.2, (SIZE, SIZE)).astype(np.float32)
            boxes = []
            for half in range(2):
                width, height = rng.integers(5, 15, 2)
                x = rng.integers(0, SIZE - width)
                y = rng.integers(half * SIZE // 2, half * SIZE // 2 + SIZE // 2 - height)
                image[y : y + height, x : x + width] += rng.uniform(0.8, 1.2)
                boxes.append([x + width / 2, y + height / 2, width, height])
            self.images.append(image)
            self.boxes.append(boxes)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return torch.from_numpy(self.images[index])[None], torch.tensor(self.boxes[index], dtype=torch.float32)


def encode(boxes):
    """Targets of a batch: the cell of each centre, the offset in that cell, and the logarithm of the size."""
    target = torch.zeros(len(boxes), CELLS, CELLS, 5)
    for number, of_image in enumerate(boxes):
        for x, y, width, height in of_image:
            column, row = int(x // STRIDE), int(y // STRIDE)
            target[number, row, column] = torch.tensor(
                [1.0, x / STRIDE - column, y / STRIDE - row, torch.log(width / STRIDE), torch.log(height / STRIDE)]
            )
    return target


def decode(output, count=2):
    """The boxes of the most certain cells of each image."""
    flat = output.permute(0, 2, 3, 1).flatten(1, 2)
    best = flat[..., 0].topk(count).indices
    values = flat.gather(1, best[..., None].expand(-1, -1, 5))
    row, column = best // CELLS, best % CELLS
    return torch.stack(
        [
            (column + values[..., 1].sigmoid()) * STRIDE, (row + values[..., 2].sigmoid()) * STRIDE,
            values[..., 3].exp() * STRIDE, values[..., 4].exp() * STRIDE,
        ], -1,
    )


def losses(output, target):
    output = output.permute(0, 2, 3, 1)
    present = target[..., 0] > 0
    certainty = F.binary_cross_entropy_with_logits(output[..., 0], target[..., 0])
    centre = F.mse_loss(output[present][:, 1:3].sigmoid(), target[present][:, 1:3])
    size = F.mse_loss(output[present][:, 3:], target[present][:, 3:])
    return {"certainty": certainty, "centre": centre, "size": size}


def overlaps(found, truth):
    low = torch.maximum((found[..., :2] - found[..., 2:] / 2)[:, :, None], (truth[..., :2] - truth[..., 2:] / 2)[:, None])
    high = torch.minimum((found[..., :2] + found[..., 2:] / 2)[:, :, None], (truth[..., :2] + truth[..., 2:] / 2)[:, None])
    common = (high - low).clamp(min=0).prod(-1)
    return common / (found[..., 2:].prod(-1)[:, :, None] + truth[..., 2:].prod(-1)[:, None] - common)


model = nn.Sequential(
    nn.Conv2d(1, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
    nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
    nn.Conv2d(32, 48, 3, 2, 1), nn.BatchNorm2d(48), nn.ReLU(),
    nn.Conv2d(48, 48, 3, 1, 1), nn.BatchNorm2d(48), nn.ReLU(), nn.Conv2d(48, 5, 1),
)
train = torch.utils.data.DataLoader(Parts(300), batch_size=20, shuffle=True)
test = torch.utils.data.DataLoader(Parts(120), batch_size=60)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(10):
    model.train()
    for images, boxes in train:
        parts = losses(model(images), encode(boxes))
        loss = sum(parts.values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        shared = torch.cat([overlaps(decode(model(images)), boxes).amax(1).flatten() for images, boxes in test])
    told = ", ".join(f"{name} {float(value):.4f}" for name, value in parts.items())
    print(f"epoch {epoch + 1}: {told}, mean iou {shared.mean():.4f}")
