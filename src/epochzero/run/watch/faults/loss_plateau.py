"""The training loss stops falling far from what could be reached."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import course, does_well
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import TrainingFinding


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """The training loss stops falling far from what could be reached."""
    found = course(history)
    if (
        found is None
        or found.count < 60
        or not 0.03 < found.fall < 0.6
        or found.slope > 0.05
        or does_well(history)
    ):
        return
    yield TrainingFinding(
        "loss_plateau",
        0,
        f"The loss decreased by {percent(found.fall)} and then stayed at {found.end:.4g}.",
        confidence=0.6,
        evidence={"first loss": found.start, "last loss": found.end},
        series="loss",
    )
