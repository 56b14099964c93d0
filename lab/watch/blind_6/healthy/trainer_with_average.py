"""A trainer class of one's own: an evaluation before the start, one after each epoch, and an average of the weights."""
import copy

import torch
from torch import nn

SEED = 47
torch.manual_seed(SEED)


def readings(count):
    """Raw values of twelve sensors, in their own units; the pattern of differences tells the fault."""
    label = torch.randint(6, (count,))
    centers = torch.linspace(-1, 1, 72).view(6, 12)[:, torch.arange(12) * 5 % 12]
    clean = torch.sin(3 * centers)[label] + 0.6 * torch.randn(count, 12)
    bent = torch.cat([clean[:, :6] * clean[:, 6:].sign(), clean[:, 6:]], 1)
    return bent * 400 + 3000, label


class Average:
    """An exponential average of a model's weights."""

    def __init__(self, model, decay):
        self.model, self.decay = copy.deepcopy(model).eval(), decay

    @torch.no_grad()
    def update(self, model):
        for kept, now in zip(self.model.state_dict().values(), model.state_dict().values()):
            if kept.is_floating_point():
                kept.mul_(self.decay).add_(now, alpha=1 - self.decay)
            else:
                kept.copy_(now)


class Trainer:
    def __init__(self, model, train, val, lr=2e-3, batch_size=32, decay=0.99):
        self.model, self.train_data, self.val_data, self.batch_size = model, train, val, batch_size
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.average = Average(model, decay)

    @torch.no_grad()
    def evaluate(self, model):
        model.eval()
        inputs, labels = self.val_data
        return (model(inputs).argmax(1) == labels).float().mean().item()

    def epoch(self):
        inputs, labels = self.train_data
        total = 0.0
        for index in torch.randperm(len(inputs)).split(self.batch_size):
            loss = nn.functional.cross_entropy(self.model(inputs[index]), labels[index])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.average.update(self.model)
            total += loss.item() * len(index)
        return total / len(inputs)

    def fit(self, epochs):
        print(f"before the start: accuracy {self.evaluate(self.model):.4f}")
        for number in range(epochs):
            self.model.train()
            loss = self.epoch()
            print(f"epoch {number + 1}: loss {loss:.4f}, accuracy {self.evaluate(self.model):.4f}")
        print(f"accuracy of the average: {self.evaluate(self.average.model):.4f}")


def network(width=64, depth=5):
    layers, inside = [], 12
    for _ in range(depth):
        layers += [nn.Linear(inside, width), nn.BatchNorm1d(width), nn.ReLU()]
        inside = width
    return nn.Sequential(*layers, nn.Linear(width, 6))


Trainer(network(), readings(2400), readings(800)).fit(10)
