"""Forecasts three quantiles of the arrivals in an hour, with the pinball loss."""
import torch
from torch import nn

SEED = 131
QUANTILES = torch.tensor([0.1, 0.5, 0.95])
torch.manual_seed(SEED)


def arrivals(count):
    hour, day = torch.rand(count) * 24, torch.randint(7, (count,))
    busy = 6 + 4 * torch.sin((hour - 7) / 24 * 6.2832) + 3 * (day < 5)
    spread = 0.5 + 0.3 * busy
    outcome = busy + spread * (-torch.log(torch.rand(count)) - 1)
    week = nn.functional.one_hot(day, 7).float()
    phase = hour / 24 * 6.2832
    return torch.cat([phase.sin()[:, None], phase.cos()[:, None], week], 1), outcome


def pinball(found, outcome):
    above = outcome[:, None] - found
    return torch.maximum(QUANTILES * above, (QUANTILES - 1) * above).mean()


x, y = arrivals(3000)
val_x, val_y = arrivals(1000)
test_x, test_y = arrivals(2000)
candidates = {}
for lr in (1e-5, 1e-3, 4e-3):
    torch.manual_seed(SEED)
    model = nn.Sequential(nn.Linear(9, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for index in torch.randperm(len(x)).split(50):
        loss = pinball(model(x[index]), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        found = model(val_x)
    inside = ((val_y > found[:, 0]) & (val_y < found[:, 2])).float().mean()
    candidates[lr] = -pinball(found, val_y).item()
    print(f"rate {lr}: score {candidates[lr]:.4f}, {inside:.2f} inside")

lr = max(candidates, key=candidates.get)
print(f"training with a rate of {lr}")
model = nn.Sequential(nn.Linear(9, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=lr)
for epoch in range(15):
    total = 0.0
    for index in torch.randperm(len(x)).split(50):
        loss = pinball(model(x[index]), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(index)
    if epoch % 3 == 2:
        with torch.no_grad():
            found = model(test_x)
            above = test_y[:, None] - found
            error = torch.where(above > 0, QUANTILES * above, (QUANTILES - 1) * above).mean()
        below = (test_y[:, None] < found).float().mean(0)
        print(f"epoch {epoch + 1}: loss {total / len(x):.4f}, below {below.tolist()}, test pinball {error:.4f}")
