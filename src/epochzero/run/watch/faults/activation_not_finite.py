"""A layer gives NaN or infinity."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines import activation_place
from epochzero.run.watch.model import TrainingFinding


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """The first layer in the order of calls, at the first iteration where one does."""
    for one in history.iterations:
        for path, _ in history.order:
            share = one.layers.get(path, {}).get("nonfinite", 0.0)
            if share > 0:
                layer = history.layer(path)
                yield TrainingFinding(
                    "activation_not_finite",
                    one.number,
                    f"{path} is the first layer whose output is not finite ({percent(share)} of its values) at iteration "
                    f"{one.number}.",
                    layer=path.partition(":")[0],
                    place=activation_place(layer, path),
                    confidence=0.9,
                )
                return
