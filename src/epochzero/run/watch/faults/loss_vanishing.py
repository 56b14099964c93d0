"""The training loss is as good as zero."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import course
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import TrainingFinding


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """The training loss is as good as zero."""
    found = course(history)
    if found is None or found.count < 30 or not abs(found.end) < 1e-4 * max(abs(found.first), 1e-3):
        return
    yield TrainingFinding(
        "loss_vanishing",
        0,
        f"The loss has decreased from {found.first:.4g} to {found.end:.2g}.",
        confidence=0.5,
        evidence={"first loss": found.first, "last loss": found.end},
        series="loss",
    )
