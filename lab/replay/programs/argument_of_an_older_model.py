"""The model's dropout was renamed; the settings were not."""

import torch
from torch import nn

torch.set_num_threads(1)


class Encoder(nn.Module):
    def __init__(self, features, width, dropout=0.1):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.Dropout(dropout))
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        return self.head(self.body(x))


settings = {"features": 12, "width": 48, "drop_rate": 0.2}
model = Encoder(**settings)
optimizer = torch.optim.Adam(model.parameters())
for step in range(100):
    loss = nn.functional.cross_entropy(model(torch.randn(16, 12)), torch.randint(3, (16,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
