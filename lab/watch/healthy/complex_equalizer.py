"""A complex-valued network undoes the echo of a radio channel: 7 received samples give the sent symbol.

Should reach: val symbol accuracy of at least 0.95 (chance: 0.25).
"""

import math

import torch
from torch import nn

torch.manual_seed(11)
torch.set_num_threads(1)


def transmit(count):
    """Four phases, an echo of three taps, a mild nonlinearity and noise."""
    symbols = torch.randint(0, 4, (count,))
    sent = torch.exp(1j * (math.pi / 4 + math.pi / 2 * symbols)).to(torch.cfloat)
    taps = torch.tensor([0.9 + 0.1j, 0.35 - 0.3j, -0.15 + 0.1j], dtype=torch.cfloat)
    received = sum(tap * torch.roll(sent, delay) for delay, tap in enumerate(taps))
    received = received * (1 - 0.08 * received.abs() ** 2)
    received = received + 0.3 * torch.randn(count, dtype=torch.cfloat)
    windows = received.unfold(0, 7, 1)
    return windows, symbols[2 : 2 + len(windows)]


class ComplexLinear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs, dtype=torch.cfloat) / inputs**0.5)
        self.bias = nn.Parameter(torch.zeros(outputs, dtype=torch.cfloat))

    def forward(self, z):
        return z @ self.weight.T + self.bias


class ModReLU(nn.Module):
    """Keeps the phase, shifts and rectifies the magnitude."""

    def __init__(self, width):
        super().__init__()
        self.shift = nn.Parameter(torch.full((width,), -0.1))

    def forward(self, z):
        magnitude = z.abs() + 1e-6
        return z * (torch.relu(magnitude + self.shift) / magnitude)


class Equalizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(ComplexLinear(7, 24), ModReLU(24), ComplexLinear(24, 12), ModReLU(12))
        self.head = nn.Linear(24, 4)

    def forward(self, z):
        return self.head(torch.view_as_real(self.body(z)).flatten(1))


train_x, train_y = transmit(6000)
val_x, val_y = transmit(1500)
model = Equalizer()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(12):
    model.train()
    mean = 0.0
    order = torch.randperm(len(train_x))
    for i in range(0, len(order), 64):
        index = order[i : i + 64]
        optimizer.zero_grad()
        loss = loss_fn(model(train_x[index]), train_y[index])
        loss.backward()
        optimizer.step()
        mean += loss.item() * len(index) / len(order)
    model.eval()
    with torch.no_grad():
        correct = (model(val_x).argmax(1) == val_y).float().mean().item()
    print(f"epoch {epoch + 1} loss {mean:.4f} val symbol accuracy {correct:.4f}")
