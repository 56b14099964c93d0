"""Steps that are tiny beside the weights."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import does_well, relative_updates
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import TrainingFinding

_SMALL = 1e-5


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Update beside weight of the weight that moves most."""
    updates = relative_updates(history)
    most = max(updates.values(), default=1.0)
    if most > _SMALL or most <= 1e-9 or does_well(history):
        return
    yield TrainingFinding(
        "updates_too_small",
        0,
        f"No step changes a weight by more than {most:.1e} of its size.",
        confidence=0.6,
        series="update",
    )
