"""Sorts beans by shape; a configuration names the model, the optimizer and the training."""
import json

import torch
from torch import nn

SEED = 73
CONFIG = json.loads("""
{
  "data": {"train": 2400, "test": 800, "noise": 0.25},
  "model": {"sizes": [8, 64, 64, 64, 5], "activation": "relu", "dropout": 0.0},
  "optimizer": {"name": "sgd", "base_lr": 0.8, "momentum": 0.9, "weight_decay": 0.0001},
  "training": {"batch_size": 32, "epochs": 12}
}
""")
torch.manual_seed(SEED)
ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU, "tanh": nn.Tanh}
OPTIMIZERS = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}


def build_model(sizes, activation, dropout):
    layers = []
    for inside, outside in zip(sizes[:-2], sizes[1:-1]):
        layers.append(nn.Linear(inside, outside))
        layers.append(ACTIVATIONS[activation]())
        if dropout > 0:
            layers.append(nn.Dropout(dropout))
    layers.append(nn.Linear(sizes[-2], sizes[-1]))
    return nn.Sequential(*layers)


def build_optimizer(parameters, batch_size, name, base_lr, **settings):
    """The rate is given for batches of 256 and grows with the batch."""
    lr = base_lr * batch_size / 256
    return OPTIMIZERS[name](parameters, lr=lr, **settings)


def beans(count, noise):
    length, width = 1 + torch.rand(count), 0.4 + torch.rand(count)
    bend, weight = torch.randn(count), torch.randn(count)
    label = (bend.abs() > 0.8).long() + 2 * (weight * bend > 0).long()
    label = torch.where(length * width > 1.8, 4, label)
    clean = torch.stack([length, width, bend, weight], 1)
    measured = torch.cat([clean, clean + noise * torch.randn(count, 4)], 1)
    return (measured - measured.mean(0)) / measured.std(0), label


def main(config):
    x, y = beans(config["data"]["train"], config["data"]["noise"])
    test_x, test_y = beans(config["data"]["test"], config["data"]["noise"])
    training = config["training"]
    model = build_model(**config["model"])
    optimizer = build_optimizer(model.parameters(), training["batch_size"], **config["optimizer"])
    steps = training["epochs"] * -(-len(x) // training["batch_size"])
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for epoch in range(training["epochs"]):
        model.train()
        total = 0.0
        for index in torch.randperm(len(x)).split(training["batch_size"]):
            loss = nn.functional.cross_entropy(model(x[index]), y[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(index)
        model.eval()
        with torch.no_grad():
            accuracy = (model(test_x).argmax(1) == test_y).float().mean()
        print(f"epoch {epoch + 1}: loss {total / len(x):.4f}, test accuracy {accuracy:.4f}")


main(CONFIG)
