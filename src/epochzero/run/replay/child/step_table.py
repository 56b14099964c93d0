"""A step as a table: properties of its batch, weights, gradients and random states."""

from __future__ import annotations

import hashlib
import json
import weakref
from collections.abc import Iterator
from typing import Any

import torch

from epochzero.run.replay.child.course import Course
from epochzero.run.replay.child.sources import random_states, states_as_json

MOST_ROWS = 2000


def table(course: Course) -> list[dict[str, Any]]:
    """Return rows with ``what`` (batch, input, weight, gradient, random) and ``name``; see `_row` for tensors."""
    batch = [_row("batch", name, tensor) for name, tensor in _tensors("", course.batch)]
    given = course.inputs or ((), {})
    inputs = [_row("input", name, tensor) for name, tensor in _tensors("", [*given[0], given[1]])]
    weights, gradients = [], []
    for number, model in enumerate(course.models):
        for name, parameter in model.named_parameters():
            path = f"{number}/{name}"
            weights.append(_row("weight", path, parameter))
            if parameter.grad is not None:
                gradients.append(_row("gradient", path, parameter.grad))
    states = [
        {"what": "random", "name": name, "digest": _digest(state)}
        for name, state in states_as_json(random_states()).items()
    ]
    return [*batch, *inputs, *weights, *gradients, *states][:MOST_ROWS]


def _row(what: str, name: str, tensor: torch.Tensor) -> dict[str, Any]:
    """Shape, type, number of non-finite elements; minimum, maximum and mean of the others."""
    row: dict[str, Any] = {
        "what": what,
        "name": name,
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype).removeprefix("torch."),
    }
    if tensor.layout is not torch.strided or tensor.is_meta or tensor.is_complex():
        return row
    values = tensor.detach().double().reshape(-1)
    finite = values[values.isfinite()]
    row["nonfinite"] = values.numel() - finite.numel()
    if finite.numel():
        row |= {"min": float(finite.min()), "max": float(finite.max())}
        row["mean"] = float(finite.mean())
    return row


def _tensors(name: str, value: Any) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, weakref.ref):
        value = value()
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from _tensors(f"{name}.{number}" if name else str(number), item)
    elif hasattr(value, "items"):
        for key, item in value.items():
            yield from _tensors(f"{name}.{key}" if name else str(key), item)


def _digest(state: Any) -> str:
    return hashlib.sha256(json.dumps(state).encode()).hexdigest()[:16]
