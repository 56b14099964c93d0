"""Units that give the same whatever their input is."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from epochzero.run.watch.faults._signals import does_well
from epochzero.run.watch.history import History
from epochzero.run.watch.lines import activation_place
from epochzero.run.watch.model import Finding

__all__ = ["find"]

_SHARE = 0.5


def find(history: History) -> Iterable[Finding]:
    """The share of units that are constant over a batch, after each activation, at the end."""
    if does_well(history):
        return
    for path, kind in history.order:
        if not kind.lower().startswith(("relu", "leaky", "elu", "gelu", "hard", "sigmoid", "tanh")):
            continue
        series = history.layer_series(path, "constant")
        if len(series) >= 3 and float(np.median(series[-3:, 1])) > _SHARE:
            layer = history.layer(path)
            since = int(series[int(np.argmax(series[:, 1] > _SHARE)), 0])
            yield Finding(
                "dead_units",
                since,
                f"{series[-1, 1]:.0%} of the units of {path} give the same for all examples.",
                layer=path.partition(":")[0],
                place=activation_place(layer, path),
                confidence=0.65,
                series="constant",
            )
            return
