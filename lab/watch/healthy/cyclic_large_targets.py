"""House prices of several hundred thousand, standardized for the training; a cyclic learning rate; evaluation only at the end.

The loss falls and rises a little with the cycles.
Should reach: test R2 of at least 0.93.
"""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(0)
torch.manual_seed(0)
torch.set_num_threads(1)

# living area (m2), age (years), distance to the center (km), rooms, garden (0/1)
n = 3000
area = rng.gamma(6, 20, n) + 30
age = rng.uniform(0, 100, n)
distance = rng.exponential(8, n)
rooms = np.round(area / 28 + rng.normal(0, 0.7, n)).clip(1)
garden = (rng.random(n) < 0.4).astype(float)
price = 3200 * area * np.exp(-distance / 25) * (1 - 0.3 * np.sin(age / 100 * np.pi)) + 15000 * rooms + 40000 * garden
price = price + rng.normal(0, 20000, n)

features = np.column_stack([area, age, distance, rooms, garden])
train, test = slice(0, 2400), slice(2400, None)
feature_mean, feature_std = features[train].mean(0), features[train].std(0)
price_mean, price_std = price[train].mean(), price[train].std()

x = torch.tensor((features - feature_mean) / feature_std, dtype=torch.float32)
y = torch.tensor((price - price_mean) / price_std, dtype=torch.float32).unsqueeze(1)

model = nn.Sequential(nn.Linear(5, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.002, max_lr=0.05, step_size_up=150)

loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x[train], y[train]), batch_size=48, shuffle=True)
for epoch in range(30):
    total = 0.0
    for inputs, targets in loader:
        loss = nn.functional.smooth_l1_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    print(f"epoch {epoch + 1:2d}  lr {scheduler.get_last_lr()[0]:.4f}  train loss {total / len(loader):.4f}")

model.eval()
with torch.no_grad():
    predicted = model(x[test]).squeeze(1).numpy() * price_std + price_mean
residual = price[test] - predicted
print(f"test mean absolute error {np.abs(residual).mean():,.0f}")
print(f"test R2 {1 - (residual**2).sum() / ((price[test] - price[test].mean()) ** 2).sum():.4f}")
