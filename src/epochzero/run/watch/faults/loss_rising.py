"""The training loss grows."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import course
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import TrainingFinding


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """The training loss grows."""
    found = course(history)
    if found is None or found.count < 20 or found.rise <= 0.1 * abs(found.start):
        return
    yield TrainingFinding(
        "loss_rising",
        0,
        f"The loss was {found.start:.4g} and is {found.end:.4g} after {history.count} iterations.",
        confidence=0.8,
        evidence={"first loss": found.start, "last loss": found.end},
        series="loss",
    )
