import numpy as np
import torch
import torch.nn as nn

np.random.seed(0)


def load_split(n):
    features = np.random.rand(n, 13)
    price = features @ np.linspace(0, 1, 13) + 0.05 * np.random.randn(n)
    return torch.from_numpy(features), torch.from_numpy(price)


class Housing(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, features):
        return self.body(features).squeeze(1)


features, price = load_split(400)
print("features", features.shape, "price", price.shape)
model = Housing()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(features), price)
    loss.backward()
    optimizer.step()
    print(f"epoch {epoch} mse {loss.item():.4f}")
