"""Layers whose weights are taken and used by functions: an encoder is run backward as the decoder."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional

torch.manual_seed(21)
torch.set_num_threads(1)
x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
x = x[torch.randperm(len(x))]
train, test = x[:1400], x[1400:]


class TiedAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(64, 48), nn.Linear(48, 16)
        self.back = nn.ParameterList([nn.Parameter(torch.zeros(48)), nn.Parameter(torch.zeros(64))])

    def forward(self, x):
        hidden = torch.tanh(functional.linear(x, self.first.weight, self.first.bias))
        code = functional.linear(hidden, self.second.weight, self.second.bias)
        hidden = torch.tanh(functional.linear(code, self.second.weight.T, self.back[0]))
        return functional.linear(hidden, self.first.weight.T, self.back[1])


model = TiedAutoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    for rows in torch.randperm(len(train)).split(32):
        loss = functional.mse_loss(model(train[rows]), train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(f"epoch {epoch} test error {functional.mse_loss(model(test), test):.5f}")
