"""The same program for many versions of Python, NumPy, pandas and torch."""

import inspect
import sys

import numpy as np
import pandas as pd
import torch
from packaging.version import Version

if sys.version_info >= (3, 12):
    from itertools import batched
else:

    def batched(items, size):
        items = list(items)
        return (tuple(items[i : i + size]) for i in range(0, len(items), size))


try:
    from collections import Mapping
except ImportError:
    from collections.abc import Mapping

NUMPY_2 = Version(np.__version__) >= Version("2.0")
if NUMPY_2:
    trapezoid = np.trapezoid
else:
    trapezoid = np.trapz
FLOAT = np.float64 if NUMPY_2 else np.float_
infinity = getattr(np, "Inf", np.inf)

TORCH = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
LOAD = {"weights_only": False} if TORCH >= (1, 13) else {}
if hasattr(torch.amp, "GradScaler"):
    Scaler = torch.amp.GradScaler
else:
    Scaler = torch.cuda.amp.GradScaler


def forward_fill(frame):
    if Version(pd.__version__) < Version("2.1"):
        return frame.fillna(method="ffill")
    return frame.ffill()


def cell_map(frame, function):
    try:
        return frame.map(function)
    except AttributeError:
        return frame.applymap(function)


def append(frame, row):
    if hasattr(frame, "append"):
        return frame.append(row, ignore_index=True)
    return pd.concat([frame, pd.DataFrame([row])], ignore_index=True)


def adam(parameters):
    options = {"lr": 1e-3}
    if "fused" in inspect.signature(torch.optim.Adam).parameters:
        options["fused"] = torch.cuda.is_available()
    return torch.optim.Adam(parameters, **options)


def merged(left: Mapping, right: Mapping) -> dict:
    return left | right if sys.version_info >= (3, 9) else {**left, **right}


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        scaler = Scaler(device, enabled=device == "cuda")
    except TypeError:
        scaler = Scaler(enabled=device == "cuda")
    model = torch.nn.Linear(4, 1).to(device)
    optimizer = adam(model.parameters())
    table = pd.DataFrame({"loss": pd.Series(dtype=FLOAT)})
    best = infinity
    for numbers in batched(range(12), 4):
        x = torch.tensor([numbers], dtype=torch.float32, device=device)
        loss = model(x).square().mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        best = min(best, loss.item())
        table = append(table, {"loss": loss.item()})
    torch.save(merged({"model": model.state_dict()}, {"best": best}), "last.pt")
    state = torch.load("last.pt", **LOAD)
    table = cell_map(forward_fill(table), float)
    print(state["best"], trapezoid(table["loss"].to_numpy()))


if __name__ == "__main__":
    main()
