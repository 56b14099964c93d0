"""Water demand of a greenhouse from its sensors; the last weeks, which are hotter, are the test."""

import numpy as np
import torch
from sklearn.preprocessing import StandardScaler
from torch import nn

torch.manual_seed(131)
rng = np.random.default_rng(131)
HOURS = 3000
season = np.linspace(-1.2, 1.6, HOURS)
temperature = 18 + 6 * season + 4 * np.sin(np.arange(HOURS) * 2 * np.pi / 24) + rng.normal(size=HOURS)
sun = np.clip(400 + 150 * season + 250 * np.sin(np.arange(HOURS) * 2 * np.pi / 24) + 40 * rng.normal(size=HOURS), 0, None)
damp = 70 - 10 * season + 8 * rng.normal(size=HOURS)
features = np.stack([temperature, sun, damp], 1)
demand = 0.3 * temperature + 0.006 * sun - 0.05 * damp + 0.2 * rng.normal(size=HOURS)

scaler = StandardScaler()
train_x = scaler.fit_transform(features[:2500])
test_x = scaler.transform(features[2500:])
train_x, test_x = (torch.tensor(a, dtype=torch.float32) for a in (train_x, test_x))
middle, spread = demand[:2500].mean(), demand[:2500].std()
train_y = torch.tensor((demand[:2500] - middle) / spread, dtype=torch.float32)[:, None]

model = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    total = 0.0
    for rows in torch.randperm(2500).split(50):
        loss = nn.functional.mse_loss(model(train_x[rows]), train_y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch + 1} mse {total / 50:.4f}")

with torch.no_grad():
    guess = model(test_x)[:, 0].numpy() * spread + middle
print(f"test mean error {np.abs(guess - demand[2500:]).mean():.4f} litres")
