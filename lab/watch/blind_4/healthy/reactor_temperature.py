"""Temperature of a controlled reactor: nearly the same at all times, and only the small rest is to be learned."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(97)
readings = torch.randn(2500, 8)
drift = 0.3 * torch.tanh(readings[:, 0]) + 0.2 * readings[:, 1] * readings[:, 2] + 0.15 * readings[:, 3]
temperature = 350.0 + drift + 0.03 * torch.randn(2500)
middle = temperature[:2000].mean()
rest = temperature - middle
train = DataLoader(TensorDataset(readings[:2000], rest[:2000]), batch_size=50, shuffle=True)

model = nn.Sequential(nn.Linear(8, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.MSELoss()
for epoch in range(12):
    total = 0.0
    for x, y in train:
        prediction = model(x).squeeze(1)
        loss = criterion(prediction, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1} mse {total / len(train):.5f}")

with torch.no_grad():
    guess = middle + model(readings[2000:])[:, 0]
    error = (guess - temperature[2000:]).pow(2).sum()
    spread = (temperature[2000:] - temperature[2000:].mean()).pow(2).sum()
print(f"r2 {1 - (error / spread).item():.4f}")
