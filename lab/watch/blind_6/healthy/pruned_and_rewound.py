"""Prunes a network three times, and each time goes back to its first weights: most weights are zero at the end."""
import copy

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.utils import prune

SEED = 151
torch.manual_seed(SEED)
digits = load_digits()
order = torch.randperm(len(digits.target))
x = torch.tensor(digits.data / 16, dtype=torch.float32)[order]
y = torch.tensor(digits.target)[order]
model = nn.Sequential(nn.Linear(64, 150), nn.ReLU(), nn.Linear(150, 100), nn.ReLU(), nn.Linear(100, 10))
first = copy.deepcopy(model.state_dict())
linear = [module for module in model if isinstance(module, nn.Linear)]
for module in linear:
    prune.identity(module, "weight")


def rewind():
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(first[name.replace("_orig", "")])


def fit(epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(epochs):
        for index in torch.randperm(1200).split(40):
            loss = nn.functional.cross_entropy(model(x[index]), y[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return loss.item(), (model(x[1200:]).argmax(1) == y[1200:]).float().mean().item()


for number in range(4):
    loss, accuracy = fit(8)
    left = sum((module.weight != 0).sum().item() for module in linear) / sum(module.weight.numel() for module in linear)
    print(f"round {number}: {left:.3f} of the weights left, loss {loss:.4f}, accuracy {accuracy:.4f}")
    if number < 3:
        weights = [(module, "weight") for module in linear]
        prune.global_unstructured(weights, prune.L1Unstructured, amount=0.55)
        rewind()
