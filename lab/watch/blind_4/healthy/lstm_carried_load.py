"""Stateful LSTM of an electricity load: the state is carried from window to window through the year."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(37)
STREAMS, WINDOW, WINDOWS = 16, 24, 30
t = torch.arange(STREAMS * (WINDOW * WINDOWS + 1)).float()
load = 50 + 12 * torch.sin(2 * torch.pi * t / 24) + 6 * torch.sin(2 * torch.pi * t / 168) + 1.5 * torch.randn(len(t))
load = load + 5 * (t % 168 > 120)
cut = len(load) - 1000
mean, std = load[:cut].mean(), load[:cut].std()
series = (load - mean) / std
streams = series.view(STREAMS, -1)
history, fresh = streams[:14], series[cut:]


class Forecaster(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x, state):
        h, state = self.lstm(x[..., None], state)
        return self.head(h).squeeze(-1), state


model = Forecaster()
optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)

for epoch in range(6):
    state, total = None, 0.0
    for k in range(WINDOWS):
        x = history[:, k * WINDOW : (k + 1) * WINDOW]
        y = history[:, k * WINDOW + 1 : (k + 1) * WINDOW + 1]
        out, state = model(x, state)
        state = tuple(s.detach() for s in state)
        loss = F.mse_loss(out, y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch + 1} loss {total / WINDOWS:.4f}")

with torch.no_grad():
    out, _ = model(fresh[None, :-1], None)
    rmse = (F.mse_loss(out[0, 100:], fresh[101:]).sqrt() * std).item()
print(f"one-hour-ahead rmse {rmse:.3f} MW")
