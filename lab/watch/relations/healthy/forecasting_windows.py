"""Forecasts of a noisy seasonal series from sliding windows with an LSTM, run by a generator of batches."""

import torch
from torch import nn

torch.manual_seed(19)
time = torch.arange(1400.0)
series = torch.sin(time / 9) + 0.5 * torch.sin(time / 31) + 0.1 * torch.randn(1400)
WINDOW, HORIZON = 24, 3
windows = series.unfold(0, WINDOW + HORIZON, 1)
train, test = windows[:1100], windows[1150:]


def batches(data, size):
    order = torch.randperm(len(data))
    for start in range(0, len(data) - size + 1, size):
        chosen = data[order[start : start + size]]
        yield chosen[:, :WINDOW].unsqueeze(-1), chosen[:, WINDOW:]


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 32, batch_first=True)
        self.head = nn.Linear(32, HORIZON)

    def forward(self, past):
        hidden, _ = self.lstm(past)
        return self.head(hidden[:, -1])


model = Forecaster()
optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.8)
criterion = nn.HuberLoss()
for epoch in range(8):
    running = 0.0
    for past, future in batches(train, 44):
        prediction = model(past)
        loss = criterion(prediction, future)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    schedule.step()
    with torch.no_grad():
        error = (model(test[:, :WINDOW].unsqueeze(-1)) - test[:, WINDOW:]).abs().mean().item()
    print(f"epoch {epoch} loss {running / 25:.4f} mae {error:.4f}")
