"""Gradients grow from step to step, or are huge beside the weights."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import TrainingFinding

_HUGE = 1e3


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """The largest gradient of any weight over the iterations looked at."""
    for one in history.iterations:
        for name, of in one.parameters.items():
            gradient = of.get("gradient", {})
            if gradient.get("nonfinite", 0) > 0 or gradient.get("rms", 0.0) > _HUGE:
                layer = history.layer(name.rpartition(".")[0])
                size = "not finite" if gradient.get("nonfinite") else f"{gradient['rms']:.2g}"
                yield TrainingFinding(
                    "exploding_gradient",
                    one.number,
                    f"The gradient of {name} is {size} at iteration {one.number}.",
                    layer=name.rpartition(".")[0],
                    place=layer.place if layer else None,
                    confidence=0.75,
                    series="gradient",
                )
                return
