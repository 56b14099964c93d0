"""Gradients shrink from layer to layer until nothing is left."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import does_well, gradient_ratio, weights
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import TrainingFinding

_SMALL = 0.005


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """The gradient of the first layer beside that of the last."""
    ratio = gradient_ratio(history)
    if ratio is None or ratio > _SMALL or does_well(history):
        return
    first = next(iter(weights(history)))
    layer = history.layer(first.layer)
    yield TrainingFinding(
        "vanishing_gradient",
        0,
        f"The gradient of {first.name} is {ratio:.1e} of that of the last layer.",
        layer=first.layer,
        place=layer.place if layer else None,
        confidence=0.65,
        series="gradient",
    )
