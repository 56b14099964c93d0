"""The training loss falls, but far too slowly."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import course
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import TrainingFinding


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """The training loss falls, but far too slowly."""
    found = course(history)
    if found is None or found.count < 60 or not 0.005 < found.fall < 0.3 or found.slope < 0.1:
        return
    yield TrainingFinding(
        "slow_learning",
        0,
        (
            f"After {history.count} iterations the loss has decreased by only {percent(found.fall)} and is still "
            "decreasing."
        ),
        confidence=0.6,
        evidence={"first loss": found.start, "last loss": found.end},
        series="loss",
    )
