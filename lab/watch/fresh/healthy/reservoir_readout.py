"""A fixed random recurrent network (a reservoir), of which only the last layer is trained, as its authors want it.

Should reach: val R2 of at least 0.8; the mean gives 0.
"""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(44)
STEPS, UNITS = 4000, 200

drive = torch.rand(STEPS) * 0.5
target = torch.zeros(STEPS)
for t in range(10, STEPS):  # the NARMA task of order ten
    history = target[t - 10 : t]
    target[t] = 0.3 * target[t - 1] + 0.05 * target[t - 1] * history.sum() + 1.5 * drive[t - 10] * drive[t - 1] + 0.1


class Reservoir(nn.Module):
    def __init__(self):
        super().__init__()
        self.input = nn.Linear(1, UNITS)
        self.recurrent = nn.Linear(UNITS, UNITS, bias=False)
        self.input.weight.data *= 0.3
        self.input.bias.data.zero_()
        radius = torch.linalg.eigvals(self.recurrent.weight).abs().max()
        self.recurrent.weight.data *= 0.9 / radius
        self.requires_grad_(False)

    def forward(self, signal):
        state, states = torch.zeros(UNITS), []
        for value in signal:
            state = torch.tanh(self.input(value[None] - 0.25) + self.recurrent(state))
            states.append(state)
        return torch.stack(states)


reservoir, readout = Reservoir(), nn.Linear(UNITS + 1, 1)
states = torch.cat([reservoir(drive), drive[:, None]], 1)
states = (states - states[:3000].mean(0)) / states[:3000].std(0)
y = (target - target[:3000].mean()) / target[:3000].std()
train, val = torch.arange(100, 3000), torch.arange(3000, STEPS)
optimizer = torch.optim.Adam(readout.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.93)
for epoch in range(40):
    for rows in train[torch.randperm(len(train))].split(100):
        loss = nn.functional.mse_loss(readout(states[rows]).squeeze(1), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    with torch.no_grad():
        error = nn.functional.mse_loss(readout(states[val]).squeeze(1), y[val])
    print(f"epoch {epoch + 1} mse {loss.item():.4f} val mse {error:.4f} val R2 {1 - error / y[val].var():.4f}")
