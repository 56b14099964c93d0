import argparse
import importlib

import torch

import registry

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="linear")
parser.add_argument("--plugin", action="append", default=[])
parser.add_argument("--set", action="append", default=["classes=3", "rate=0.01"])
options = parser.parse_args()


class Settings:
    pass


settings = Settings()
for pair in options.set:
    name, value = pair.split("=")
    setattr(settings, name, float(value) if "." in value else int(value))
for name in options.plugin:
    importlib.import_module(f"plugins.{name}")
model = registry.MODELS[options.model](settings.classes)
optimizer = torch.optim.SGD(model.parameters(), lr=settings.rate)
for step in range(800):
    x = torch.randn(16, 10)
    loss = torch.nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(type(model).__name__, loss.item())
