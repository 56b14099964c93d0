"""Which of six devices are switched on? The answer from the readings of one meter."""
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(6)

DEVICES, READINGS = 6, 24
signatures = torch.rand(DEVICES, READINGS)


def readings(count):
    on = (torch.rand(count, DEVICES) < 0.4).float()
    return on @ signatures + 0.05 * torch.randn(count, READINGS), on


def initialize(module):
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.weight)
        nn.init.zeros_(module.bias)


model = nn.Sequential()
model.add_module("input", nn.Linear(READINGS, 64))
model.add_module("relu1", nn.ReLU())
model.add_module("hidden", nn.Linear(64, 64))
model.add_module("relu2", nn.ReLU())
model.add_module("output", nn.Linear(64, DEVICES))
model.apply(initialize)

criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
x, on = readings(2000)
x_val, on_val = readings(500)

for epoch in range(25):
    total = 0.0
    for rows in torch.randperm(len(x)).split(50):
        loss = criterion(model(x[rows]), on[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        found = (model(x_val) > 0).float()
    true = (found * on_val).sum().item()
    f1 = 2 * true / max(1.0, (found.sum() + on_val.sum()).item())
    print(f"epoch {epoch + 1:2d}/25  loss {total / 40:.4f}  f1 {f1:.3f}")
