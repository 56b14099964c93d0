"""How long does a parcel take, and how sure is that? A mean and a spread for each parcel."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.set_num_threads(1)
torch.manual_seed(18)


def make_parcels(count):
    distance = torch.rand(count) * 2 - 1
    weight = torch.rand(count) * 2 - 1
    express = (torch.rand(count) < 0.4).float()
    mean = 1.5 * distance + 0.5 * weight**2 - express
    spread = 0.1 + 0.4 * (distance > 0) * (1 - express)
    days = mean + spread * torch.randn(count)
    return TensorDataset(torch.stack([distance, weight, express], dim=1), days)


class MeanAndSpread(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU())
        self.mean = nn.Linear(48, 1)
        self.spread = nn.Sequential(nn.Linear(48, 1), nn.ReLU())

    def forward(self, features):
        hidden = self.body(features)
        return self.mean(hidden).squeeze(1), self.spread(hidden).squeeze(1)


def negative_log_likelihood(mean, spread, days):
    return (torch.log(spread) + (days - mean) ** 2 / (2 * spread**2)).mean()


train_set, val_set = random_split(make_parcels(2500), [2000, 500])
model = MeanAndSpread()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(20):
    model.train()
    for features, days in DataLoader(train_set, batch_size=50, shuffle=True):
        optimizer.zero_grad()
        loss = negative_log_likelihood(*model(features), days)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        features, days = val_set[:]
        mean, spread = model(features)
        val_loss = negative_log_likelihood(mean, spread, days).item()
        error = (mean - days).abs().mean().item()
    print(f"epoch {epoch:2d}: loss {loss.item():.4f}, val loss {val_loss:.4f}, error {error:.3f} days")
