"""Prices of houses in thousands; the model carries the mean and spread of the prices, the loss stays in thousands.

Should reach: val mean absolute error below 30; the median price gives about 127.
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(3)


def houses(count):
    area = 40 + 160 * torch.rand(count)
    rooms = (area / 30 + torch.randn(count)).round().clamp(1)
    age = 80 * torch.rand(count)
    distance = 25 * torch.rand(count) ** 2
    garden = (torch.rand(count) < 0.4).float()
    price = (2.2 * area + 12 * rooms) * (1.6 - 0.03 * distance) * (1 - 0.003 * age) + 45 * garden
    return torch.stack([area, rooms, age, distance, garden], 1), price * (1 + 0.05 * torch.randn(count))


class Valuation(nn.Module):
    def __init__(self, x, y):
        super().__init__()
        self.register_buffer("x_mean", x.mean(0))
        self.register_buffer("x_std", x.std(0))
        self.register_buffer("y_mean", y.mean())
        self.register_buffer("y_std", y.std())
        self.net = nn.Sequential(nn.Linear(5, 64), nn.SELU(), nn.Linear(64, 64), nn.SELU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.net((x - self.x_mean) / self.x_std).squeeze(1) * self.y_std + self.y_mean


x_train, y_train = houses(4000)
x_val, y_val = houses(1000)
model = Valuation(x_train, y_train)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=64, shuffle=True, drop_last=True)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.L1Loss()
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=2)
print(f"median price: {(y_val - y_train.median()).abs().mean():.1f}")
for epoch in range(25):
    model.train()
    total = 0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        error = criterion(model(x_val), y_val).item()
    plateau.step(error)
    print(f"[{epoch + 1}/25] train {total / len(loader):.2f} val mean absolute error {error:.2f} lr {optimizer.param_groups[0]['lr']:.1e}")
