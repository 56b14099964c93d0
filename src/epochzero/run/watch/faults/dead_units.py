"""Units that give the same whatever their input is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from epochzero.run.watch.faults._signals import does_well
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import Series, TrainingHistory
from epochzero.run.watch.lines import activation_place
from epochzero.run.watch.model import TrainingFinding

_SHARE = 0.5
_PLACES = 8


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """The share of units that are constant over a batch, after each activation, at the end."""
    if does_well(history):
        return
    for path, kind in history.order:
        if not kind.lower().startswith(("relu", "leaky", "elu", "gelu", "hard", "sigmoid", "tanh")):
            continue
        series = _constant(history, path)
        if len(series) >= 3 and float(np.median(series[-3:, 1])) > _SHARE:
            layer = history.layer(path)
            since = int(series[int(np.argmax(series[:, 1] > _SHARE)), 0])
            yield TrainingFinding(
                "dead_units",
                since,
                f"{percent(series[-1, 1])} of the units of {path} have the same output for all examples.",
                layer=path.partition(":")[0],
                place=activation_place(layer, path),
                confidence=0.65,
                series="constant",
            )
            return


def _constant(history: TrainingHistory, path: str) -> Series:
    """The share of constant units over the iterations whose batch has enough places to tell by.

    A unit of a live ReLU is silent for half of the examples: over one of them each unit is constant.
    """
    found = [
        (one.number, layer["constant"])
        for one in history.iterations
        if (layer := one.layers.get(path))
        and "constant" in layer
        and _places(layer["shape"]) >= _PLACES
    ]
    return np.array(found, dtype=float).reshape(-1, 2)


def _places(shape: Sequence[int]) -> int:
    """How many values each unit has: examples, and of images or sequences their places."""
    if len(shape) < 2:
        return 1
    unit = shape[-1] if len(shape) == 3 else shape[1]
    return math.prod(shape) // max(1, unit)
