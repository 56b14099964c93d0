"""An LSTM forecasts the next value of mixed sine waves. Val rmse reaches about 0.15; always zero gives 1.0."""

import math

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(17)
np.random.seed(17)

WINDOW = 24


def series(length):
    t = np.arange(length)
    wave = np.sin(2 * math.pi * t / 17) + 0.6 * np.sin(2 * math.pi * t / 7.3 + 1)
    return 20 + 8 * wave + 0.8 * np.random.randn(length)


def windows(values):
    values = torch.tensor(values, dtype=torch.float32)
    inputs = values.unfold(0, WINDOW, 1)[:-1].unsqueeze(2)
    return inputs, values[WINDOW:].unsqueeze(1)


class Forecaster(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, hidden)
        self.act = nn.ReLU()
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        _, (state, _) = self.lstm(x)
        features = state[-1]
        return self.out(self.act(self.fc(features)))


raw = series(1800)
mean, std = raw[:1400].mean(), raw[:1400].std()
values = (raw - mean) / std
train_x, train_y = windows(values[:1400])
val_x, val_y = windows(values[1400:])

model = Forecaster()
loss_fn = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

EPOCHS = 12
for epoch in range(EPOCHS):
    model.train()
    epoch_loss = 0.0
    permutation = torch.randperm(len(train_x))
    for start in range(0, len(train_x), 32):
        chosen = permutation[start : start + 32]
        prediction = model(train_x[chosen])
        loss = loss_fn(prediction, train_y[chosen])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        epoch_loss += loss.item() * len(chosen)
    model.eval()
    with torch.no_grad():
        rmse = loss_fn(model(val_x), val_y).sqrt().item()
    print(f"Epoch {epoch + 1:02d}/{EPOCHS} train mse {epoch_loss / len(train_x):.4f} val rmse {rmse:.4f}")
