"""The average of the weights over time is what is delivered: a network with batch normalization on raw pixel values."""

import copy

import torch
from sklearn.datasets import load_digits
from torch import nn

SEED = 38
torch.manual_seed(SEED)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x, dtype=torch.float32) * 10 + 30, torch.tensor(y)
order = torch.randperm(len(x))
x, y = x[order], y[order]


class Average:
    def __init__(self, model, decay):
        self.model, self.decay = copy.deepcopy(model).requires_grad_(False), decay

    @torch.no_grad()
    def update(self, model):
        source = model.state_dict()
        for name, value in self.model.state_dict().items():
            if value.dtype.is_floating_point:
                value.mul_(self.decay).add_(source[name], alpha=1 - self.decay)


model = nn.Sequential(
    nn.BatchNorm1d(64), nn.Linear(64, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Linear(96, 48), nn.BatchNorm1d(48), nn.ReLU(),
    nn.Linear(48, 10),
)
average = Average(model, decay=0.97)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(30):
    model.train()
    for index in torch.randperm(1300).split(50):
        loss = nn.functional.cross_entropy(model(x[index]), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(model)
    average.model.eval()
    with torch.no_grad():
        accuracy = (average.model(x[1300:]).argmax(1) == y[1300:]).float().mean()
    print(f"epoch {epoch} loss {loss.item():.4f} accuracy of the average {accuracy:.4f}")
