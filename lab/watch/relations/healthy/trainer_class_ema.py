"""An own Trainer class: regression of a smooth function, evaluated on an exponential moving average of the weights."""

import copy

import torch
from torch import nn


class EMA:
    def __init__(self, model, decay):
        self.decay = decay
        self.model = copy.deepcopy(model).eval()
        self.model.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for averaged, current in zip(self.model.parameters(), model.parameters()):
            averaged.lerp_(current, 1 - self.decay)


class Trainer:
    def __init__(self, model, data, lr=3e-3, clip=1.0, warmup=40):
        self.model = model
        self.inputs, self.targets = data
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: min(1.0, (step + 1) / warmup)
        )
        self.clip = clip
        self.ema = EMA(model, 0.95)
        self.step = 0

    def training_step(self, index):
        prediction = self.model(self.inputs[index])
        return nn.functional.mse_loss(prediction, self.targets[index])

    def fit(self, steps, batch=64):
        for self.step in range(steps):
            loss = self.training_step(torch.randint(len(self.inputs), (batch,)))
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
            self.optimizer.step()
            self.schedule.step()
            self.ema.update(self.model)
            if self.step % 60 == 59:
                print(f"step {self.step} loss {loss.item():.4f} test {self.evaluate():.4f}")

    @torch.no_grad()
    def evaluate(self):
        x = torch.linspace(-2, 2, 200).unsqueeze(1).repeat(1, 3)
        return nn.functional.mse_loss(self.ema.model(x), target(x)).item()


def target(x):
    return torch.sin(3 * x[:, :1]) * x[:, 1:2] + 0.3 * x[:, 2:]


torch.manual_seed(1)
inputs = torch.rand(2000, 3) * 4 - 2
network = nn.Sequential(nn.Linear(3, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))
Trainer(network, (inputs, target(inputs))).fit(420)
