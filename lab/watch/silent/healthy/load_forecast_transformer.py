"""The next hours of a power load from the last two days: a transformer encoder with positions."""

import math

import torch
from torch import nn

torch.manual_seed(27)
hours = torch.arange(2600)
load = (
    500
    + 80 * torch.sin(hours * math.pi / 12)
    + 30 * torch.sin(hours * math.pi / 84)
    + 10 * torch.randn(2600)
)
split = 2100
mean, std = load[:split].mean(), load[:split].std()


def scaled(values):
    return (values - mean) / std


def windows(values):
    pieces = values.unfold(0, 54, 1)
    return pieces[:, :48, None], pieces[:, 48:]


train_x, train_y = windows(scaled(load[:split]))
valid_x, valid_y = windows(scaled(load[split:]))


class Forecaster(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.read = nn.Linear(1, width)
        self.position = nn.Parameter(0.1 * torch.randn(48, width))
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.head = nn.Linear(width, 6)

    def forward(self, x):
        return self.head(self.encoder(self.read(x) + self.position).mean(1))


model = Forecaster()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(6):
    model.train()
    for part in torch.randperm(len(train_x)).split(64):
        loss = nn.functional.mse_loss(model(train_x[part]), train_y[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        error = nn.functional.mse_loss(model(valid_x), valid_y)
    print(f"epoch {epoch} loss {loss.item():.4f} valid {error.item():.4f}")
