"""A detector of one rectangle or disc an image: its class and its box in shares of the image."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(14)


class Shapes(Dataset):
    def __init__(self, count, side=24):
        self.images, self.boxes, self.kinds = [], [], []
        rows, columns = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
        for _ in range(count):
            size, kind = int(torch.randint(5, 11, ())), int(torch.randint(2, ()))
            y, x = torch.randint(0, side - size, (2,)).tolist()
            inside = (rows >= y) & (rows < y + size) & (columns >= x) & (columns < x + size)
            if kind:
                inside = (rows - y - size / 2) ** 2 + (columns - x - size / 2) ** 2 < size**2 / 4
            self.images.append(inside.float()[None] + 0.1 * torch.randn(1, side, side))
            self.boxes.append(torch.tensor([x, y, x + size, y + size]) / side)
            self.kinds.append(kind)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], self.boxes[index], self.kinds[index]


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, 2, 1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 36, 96),
            nn.ReLU(),
        )
        self.box, self.kind = nn.Linear(96, 4), nn.Linear(96, 2)

    def forward(self, images):
        hidden = self.backbone(images)
        return self.box(hidden).sigmoid(), self.kind(hidden)


model = Detector()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = DataLoader(Shapes(1200), batch_size=32, shuffle=True)
for epoch in range(6):
    for images, boxes, kinds in loader:
        found, scores = model(images)
        box_loss = nn.functional.smooth_l1_loss(found, boxes)
        kind_loss = nn.functional.cross_entropy(scores, kinds)
        loss = 10 * box_loss + kind_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} box {box_loss.item():.4f} kind {kind_loss.item():.3f}")
