"""Steps that are large beside the weights."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import does_well, relative_updates
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import TrainingFinding

_LARGE = 0.3


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Update beside weight, in the median over the iterations looked at."""
    updates = relative_updates(history)
    name = max(updates, key=lambda name: updates[name], default="")
    if not name or updates[name] < _LARGE or does_well(history):
        return
    layer = history.layer(name.rpartition(".")[0])
    yield TrainingFinding(
        "updates_too_large",
        0,
        f"A step changes {name} by {percent(updates[name])} of its size.",
        layer=name.rpartition(".")[0],
        place=layer.place if layer else None,
        confidence=0.6,
        series="update",
    )
