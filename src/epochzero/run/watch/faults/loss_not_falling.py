"""The training loss stays where it began."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import course
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import TrainingFinding

_LONG = 100
"""Iterations: a warm-up, and fine-tuning at a small rate, begin with tens of them at the same loss."""


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """The training loss stays where it began."""
    found = course(history)
    if found is None or found.count < _LONG or not found.finite or abs(found.fall) > 0.03:
        return
    yield TrainingFinding(
        "loss_not_falling",
        0,
        f"The loss was {found.start:.4g} and is {found.end:.4g} after {history.count} iterations.",
        confidence=0.8,
        evidence={"first loss": found.start, "last loss": found.end},
        series="loss",
    )
