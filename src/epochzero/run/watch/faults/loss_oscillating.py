"""The training loss jumps by more than it falls."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import course, does_well
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import TrainingFinding


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """The training loss jumps by more than it falls."""
    found = course(history)
    if found is None or found.count < 30 or found.roughness < 0.35 or does_well(history):
        return
    yield TrainingFinding(
        "loss_oscillating",
        0,
        f"The loss changes by {percent(found.roughness)} of its value from one iteration to the next.",
        confidence=0.6,
        evidence={"first loss": found.start, "last loss": found.end},
        series="loss",
    )
