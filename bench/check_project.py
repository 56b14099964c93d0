"""A synthetic project of many modules that a check can be timed on.

It is made as training code is: packages of models, data, losses, metrics, tasks and tools, a registry
that imports them, a parser with many options, a configuration, and an entry point that trains,
evaluates and saves. Nothing in it is wrong.
"""

from __future__ import annotations

import random
from pathlib import Path

__all__ = ["write_project"]

PACKAGES = ("models", "data", "losses", "metrics", "tasks", "tools")

_MODEL = '''class {name}(nn.Module):
    """Block {number}: {layers} layers of width {width}."""

    def __init__(self, inputs={width}, outputs={width}, dropout=0.1):
        super().__init__()
        self.inputs = inputs
        self.outputs = outputs
        self.first = nn.Linear(inputs, {width})
        self.blocks = nn.ModuleList([nn.Linear({width}, {width}) for _ in range({layers})])
        self.norm = nn.LayerNorm({width})
        self.dropout = nn.Dropout(dropout)
        self.last = nn.Linear({width}, outputs)

    def forward(self, x, mask=None):
        hidden = torch.relu(self.first(x))
        for block in self.blocks:
            hidden = hidden + self.dropout(block(self.norm(hidden)))
        if mask is not None:
            hidden = hidden * mask.unsqueeze(-1)
        return self.last(hidden)

    def size(self):
        return sum(parameter.numel() for parameter in self.parameters())


'''
_FUNCTION = '''def {name}(values, folder="{folder}", scale={scale}, limit=None):
    """Step {number} of the pipeline."""
    names = sorted({{str(value) for value in values}})
    found = {{}}
    for index, name in enumerate(names):
        if limit is not None and index >= limit:
            break
        path = os.path.join(folder, f"part-{{index:05d}}", name)
        try:
            found[name] = len(path) * scale
        except TypeError as error:
            raise ValueError(f"{{name}} cannot be used: {{error}}") from error
    total = sum(found.values()) or 1.0
    shares = {{name: value / total for name, value in found.items()}}
    if shares:
        best = max(shares, key=shares.get)
        print("%s: best is %s of %d" % ("{name}", best, len(shares)))
    return shares


'''
_CALL = '''def {name}(values):
    """Runs what stands before it."""
    result = {callee}(values, scale={scale})
    return list(result) if isinstance(result, dict) else result


'''
_MAIN = '''"""Entry point of the synthetic project."""

import argparse
import json
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

{imports}

MODELS = {{{models}}}


def parse_args():
    parser = argparse.ArgumentParser()
{options}
    parser.add_argument("--model", default="{default}")
    parser.add_argument("--output", default="output")
    parser.add_argument("--epochs", type=int, default=3)
    return parser.parse_args()


def main():
    args = parse_args()
    os.makedirs(args.output, exist_ok=True)
    with open("config.json") as handle:
        config = json.load(handle)
    model = MODELS[args.model](dropout=config["dropout"])
    data = TensorDataset(torch.randn(256, model.inputs), torch.randn(256, model.outputs))
    loader = DataLoader(data, batch_size=config["batch_size"], shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"])
    for epoch in range(args.epochs):
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()
        print(f"epoch {{epoch}} loss {{loss.item():.4f}}")
        torch.save(model.state_dict(), os.path.join(args.output, f"epoch_{{epoch}}.pt"))
{calls}


if __name__ == "__main__":
    main()
'''


def write_project(folder: Path, lines: int, seed: int) -> int:
    """Writes the project and says how many lines of Python it has, at least as many as asked for.

    Args:
        folder: new or empty.
        lines: how many are wanted.
        seed: the same seed gives the same project.
    """
    drawn = random.Random(seed)
    for package in PACKAGES:
        (folder / package).mkdir(parents=True)
        (folder / package / "__init__.py").write_text("", encoding="utf-8")
    modules: list[tuple[str, str, str]] = []  # dotted name, its last function, its model or nothing
    written = 0
    while written < lines:
        package = PACKAGES[len(modules) % len(PACKAGES)]
        name = f"{package}.{package[:-1]}_{len(modules):03d}"
        text, last, model = _module(drawn, len(modules), package == "models", modules)
        (folder / f"{name.replace('.', '/')}.py").write_text(text, encoding="utf-8")
        modules.append((name, last, model))
        written += text.count("\n")
    main = _main(drawn, modules)
    (folder / "train.py").write_text(main, encoding="utf-8")
    config = '{"dropout": 0.1, "batch_size": 32, "lr": 0.001}\n'
    (folder / "config.json").write_text(config, encoding="utf-8")
    return written + main.count("\n")


def _module(
    drawn: random.Random, number: int, models: bool, before: list[tuple[str, str, str]]
) -> tuple[str, str, str]:
    """Text of a module of some 200 lines that uses a few of those before it."""
    used = drawn.sample(before, min(3, len(before)))
    head = ['"""A part of the synthetic project."""', "", "import os", ""]
    if models:
        head += ["import torch", "from torch import nn", ""]
    parts = ["\n".join([*head, *(f"from {m} import {f}" for m, f, _ in used), "\n\n"])]
    model = f"Network{number}" if models else ""
    if models:
        width, layers = drawn.choice((64, 128, 256)), drawn.randint(1, 6)
        parts.append(_MODEL.format(name=model, number=number, width=width, layers=layers))
    names = [found for _, found, _ in used]
    for index in range(8):
        name = f"prepare_{number}_{index}"
        scale, folder = round(drawn.uniform(0.1, 4), 2), drawn.choice(("cache", "parts", "shards"))
        parts.append(_FUNCTION.format(name=name, number=index, scale=scale, folder=folder))
        callee = drawn.choice([name, *names])
        parts.append(_CALL.format(name=f"run_{number}_{index}", callee=name, scale=scale))
        names = [name] if callee == name else names
    return "".join(parts).rstrip() + "\n", f"prepare_{number}_7", model


def _main(drawn: random.Random, modules: list[tuple[str, str, str]]) -> str:
    models = [(name, model) for name, _, model in modules if model]
    imports = [f"from {name} import {last}" for name, last, _ in modules]
    imports += [f"from {name} import {model}" for name, model in models]
    options = [
        f'    parser.add_argument("--option-{number}", type=float, default={drawn.random():.3f})'
        for number in range(40)
    ]
    return _MAIN.format(
        imports="\n".join(imports),
        models=", ".join(f'"{model.lower()}": {model}' for _, model in models),
        options="\n".join(options),
        default=models[0][1].lower(),
        calls="\n".join(f"    {last}(range({drawn.randint(2, 20)}))" for _, last, _ in modules),
    )
