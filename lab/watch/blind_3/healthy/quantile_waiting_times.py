"""Upper bounds of waiting times at a clinic: a network for one quantile, trained with the pinball loss on skewed targets."""

import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset

QUANTILE = 0.8


def patients(n, seed):
    g = torch.Generator().manual_seed(seed)
    hour = 8 + 10 * torch.rand(n, generator=g)
    urgent = (torch.rand(n, generator=g) < 0.2).float()
    staff = torch.randint(2, 7, (n,), generator=g).float()
    ahead = torch.poisson(3 + 3 * torch.exp(-((hour - 11) ** 2) / 4), generator=g)
    mean = 4 + 22 * ahead * (1 - 0.7 * urgent) / staff
    minutes = mean * torch.empty(n).exponential_(1.0, generator=g).add(1.0).div(2)
    x = torch.stack([(hour - 13) / 3, urgent, (staff - 4) / 1.5, (ahead - 5) / 3], 1)
    return x, minutes


def pinball(prediction, target):
    error = target - prediction
    return torch.maximum(QUANTILE * error, (QUANTILE - 1) * error).mean()


class Bound(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, x):
        return 30 + 20 * self.net(x).squeeze(-1)


def train_one_epoch(model, loader, optimizer):
    model.train()
    total = 0.0
    for x, y in loader:
        loss = pinball(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def validate(model, x, y):
    model.eval()
    bound = model(x).view(-1)
    return pinball(bound, y).item(), (y <= bound).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(131)
    loader = DataLoader(TensorDataset(*patients(6000, 1)), batch_size=64, shuffle=True)
    validation = patients(2000, 2)
    model = Bound()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    scheduler = StepLR(optimizer, step_size=6, gamma=0.5)
    for epoch in range(24):
        train_loss = train_one_epoch(model, loader, optimizer)
        scheduler.step()
        loss, covered = validate(model, *validation)
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1} train {train_loss:.4f} covered {covered:.3f} val pinball {loss:.4f}")
