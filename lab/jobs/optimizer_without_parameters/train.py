from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class Config:
    widths: list = field(default_factory=lambda: [16, 64, 64, 1])
    lr: float = 1e-3
    epochs: int = 10
    on_error: str = "raise"


class Regressor(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.layers = [nn.Linear(a, b) for a, b in zip(widths, widths[1:])]

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)


class Trainer:
    def __init__(self, config):
        self.config = config
        self.model = Regressor(config.widths)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=config.lr, momentum=0.9)

    def fit(self, x, y):
        for epoch in range(self.config.epochs):
            loss = nn.functional.mse_loss(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            print(f"epoch={epoch} loss={loss:.5f}")


config = Config()
print(config)
print("forward ok:", Regressor(config.widths)(torch.zeros(2, 16)).shape)
Trainer(config).fit(torch.randn(256, 16), torch.randn(256, 1))
