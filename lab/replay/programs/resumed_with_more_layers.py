"""The optimizer's state of a run with fewer layers."""

import torch
from torch import nn

torch.set_num_threads(1)


def build(layers):
    parts = [nn.Linear(6, 16)]
    for _ in range(layers):
        parts += [nn.ReLU(), nn.Linear(16, 16)]
    model = nn.Sequential(*parts, nn.Linear(16, 1))
    return model, torch.optim.Adam(model.parameters(), lr=1e-3)


def train(model, optimizer, steps):
    for _ in range(steps):
        x = torch.randn(32, 6)
        loss = (model(x) - x.pow(2).sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


model, optimizer = build(1)
print("first", train(model, optimizer, 200))
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")
model, optimizer = build(2)
kept = torch.load("last.pt")
optimizer.load_state_dict(kept["optimizer"])
print("second", train(model, optimizer, 200))
