"""A network that says the yield of a field and how sure that is: spread of the noise depends on the field.

The loss is a likelihood, and goes below zero. Should reach: val nll below -0.4; one normal distribution gives about 0.6.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(25)
torch.set_num_threads(1)


def fields(count):
    """Eight numbers of a field, and its yield; dry fields are hard to tell."""
    x = torch.randn(count, 8)
    level = torch.sin(1.5 * x[:, 0]) + 0.6 * x[:, 1] * x[:, 2] + 0.4 * x[:, 3]
    noise = 0.05 + 0.5 * torch.sigmoid(3 * x[:, 4])
    return x, (level + noise * torch.randn(count)).unsqueeze(1)


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.mean = nn.Linear(64, 1)
        self.spread = nn.Linear(64, 1)

    def forward(self, x):
        x = self.body(x)
        return self.mean(x), F.softplus(self.spread(x)) + 1e-3


train = DataLoader(TensorDataset(*fields(2400)), batch_size=64, shuffle=True)
val_x, val_y = fields(600)
model = TwoHeads()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loss_fn = nn.GaussianNLLLoss()

for epoch in range(12):
    model.train()
    total = 0.0
    for x, y in train:
        mean, spread = model(x)
        loss = loss_fn(mean, y, spread**2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        mean, spread = model(val_x)
        nll = loss_fn(mean, val_y, spread**2)
        rmse = F.mse_loss(mean, val_y).sqrt()
    print(f"epoch {epoch + 1}: loss {total / len(train):.3f} val rmse {rmse:.3f} val nll {nll:.3f}")
