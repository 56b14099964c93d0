"""The rate was read from a file of settings, and never made a number."""

import configparser

import torch
from torch import nn

torch.set_num_threads(1)

settings = configparser.ConfigParser()
settings.read_string("[optimizer]\nlr = 3e-4\nsteps = 300\n")


def build(options):
    model = nn.Linear(20, 2)
    return model, torch.optim.AdamW(model.parameters(), lr=options["lr"])


model, optimizer = build(settings["optimizer"])
for step in range(settings.getint("optimizer", "steps")):
    x = torch.randn(32, 20)
    loss = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
