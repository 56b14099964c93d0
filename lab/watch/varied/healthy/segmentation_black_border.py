"""Cells on dark slides: a black border of a quarter of all pixels, labels that are mostly background."""

import torch
from torch import nn

torch.manual_seed(17)
torch.set_num_threads(1)


def slides(count):
    image, mask = torch.zeros(count, 1, 24, 24), torch.zeros(count, 24, 24)
    grid = torch.arange(18)
    for number in range(count):
        row, column, size = torch.randint(4, 14, (2,)).tolist() + [torch.randint(2, 5, (1,)).item()]
        disc = (grid[:, None] - row) ** 2 + (grid[None] - column) ** 2 <= size**2
        image[number, 0, 3:21, 3:21] = 0.4 + 0.1 * torch.randn(18, 18) + 0.35 * disc
        mask[number, 3:21, 3:21] = disc.float()
    return image, mask


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2 = nn.Conv2d(1, 12, 3, padding=1), nn.Conv2d(12, 24, 3, padding=1)
        self.up, self.out = nn.ConvTranspose2d(24, 12, 2, stride=2), nn.Conv2d(24, 1, 1)

    def forward(self, x):
        first = torch.relu(self.down1(x))
        inner = torch.relu(self.down2(nn.functional.max_pool2d(first, 2)))
        return self.out(torch.cat([first, torch.relu(self.up(inner))], 1)).squeeze(1)


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
x, y = slides(400)
xv, yv = slides(80)
for epoch in range(8):
    model.train()
    for rows in torch.randperm(len(x)).split(16):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        found = model(xv) > 0
        overlap = (found & (yv > 0)).sum() / (found | (yv > 0)).sum()
    print(f"epoch {epoch} loss {loss.item():.4f} val overlap {overlap:.4f}")
