"""Small volumes, two at a time as memory would allow; group normalization, a noisy loss."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(89)
EDGE = 10


def volumes(count):
    sick = torch.randint(0, 2, (count,))
    brightness = (1.2 * torch.randn(count, 1, 1, 1)).exp()
    volume = brightness * (1 + 0.4 * torch.randn(count, EDGE, EDGE, EDGE))
    for row in range(count):
        a, b, c = torch.randint(1, EDGE - 4, (3,)).tolist()
        size = 3 if sick[row] else 1
        volume[row, a : a + size, b : b + size, c : c + size] += 1.2 * brightness[row]
    return volume[:, None], sick


class Scan(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.one = nn.Conv3d(1, width, 3, padding=1)
        self.norm_one = nn.GroupNorm(2, width)
        self.two = nn.Conv3d(width, 2 * width, 3, stride=2, padding=1)
        self.norm_two = nn.GroupNorm(4, 2 * width)
        self.out = nn.Linear(2 * width, 2)

    def forward(self, x):
        x = F.relu(self.norm_one(self.one(x)))
        x = F.relu(self.norm_two(self.two(x)))
        return self.out(x.amax((2, 3, 4)))


train_x, train_y = volumes(320)
test_x, test_y = volumes(300)
model = Scan()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(6):
    model.train()
    total = 0.0
    for rows in torch.randperm(320).split(2):
        loss = F.cross_entropy(model(train_x[rows]), train_y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch + 1} loss {total / 160:.4f}")

model.eval()
with torch.no_grad():
    print(f"test accuracy {(model(test_x).argmax(1) == test_y).float().mean().item():.4f}")
