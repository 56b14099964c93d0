"""Power of a wind turbine with its uncertainty: a Gaussian likelihood whose loss goes below zero.

Should reach: val negative log-likelihood below -2.3; one Gaussian for all gives about -0.33.
"""

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
torch.set_num_threads(1)


def turbine(count):
    speed = torch.rand(count, 1) * 25
    direction = torch.rand(count, 1) * 6.2832
    power = torch.sigmoid((speed - 9) * 0.8) * (1 - 0.15 * torch.cos(direction))
    noise = 0.01 + 0.08 * torch.exp(-((speed - 9) ** 2) / 12)
    x = torch.cat([(speed - 12.5) / 7.2, torch.sin(direction), torch.cos(direction)], 1)
    return x, power + noise * torch.randn(count, 1)


class Turbine(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(3, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU())
        self.mean = nn.Linear(64, 1)
        self.log_variance = nn.Linear(64, 1)

    def forward(self, x):
        h = self.shared(x)
        return self.mean(h), self.log_variance(h).clamp(-12, 4).exp()


train_data, val_data = turbine(6000), turbine(1500)
net = Turbine()
criterion = nn.GaussianNLLLoss()
optimizer = optim.Adam(net.parameters(), lr=2e-3)
scheduler = optim.lr_scheduler.ExponentialLR(optimizer, 0.85)
loader = DataLoader(TensorDataset(*train_data), batch_size=100, shuffle=True)
for epoch in range(1, 21):
    net.train()
    seen = 0.0
    for x, y in loader:
        mean, variance = net(x)
        loss = criterion(mean, y, variance)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()
        seen += loss.item()
    scheduler.step()
    net.eval()
    with torch.no_grad():
        mean, variance = net(val_data[0])
        nll = criterion(mean, val_data[1], variance)
    print(f"Epoch {epoch:02d} | train {seen / len(loader):+.3f} | val negative log-likelihood {nll:+.3f}")
