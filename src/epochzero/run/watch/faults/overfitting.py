"""The model does much better on its training data than on others."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import overfits
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import TrainingFinding


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """What the evaluations say beside the training."""
    gap = overfits(history)
    if gap is None:
        return
    yield TrainingFinding(
        "overfitting",
        gap.since,
        f"{gap.text[0].upper()}{gap.text[1:]}",
        confidence=0.7,
        series="loss",
    )
