"""Training goes on long after the evaluation loss has turned."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import overfits
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.training import epochs_place
from epochzero.run.watch.model import TrainingFinding


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """The best evaluation lies early, and enough examples were there to do better."""
    gap = overfits(history)
    if gap is None or gap.turned is None or not history.ended:
        return
    if gap.turned > 0.35 or gap.loss_ratio < 1.4:
        return
    yield TrainingFinding(
        "epochs_too_many",
        gap.since,
        f"The best evaluation was after {percent(gap.turned)} of the training: {gap.text}",
        place=epochs_place(history),
        confidence=0.58,
        fix=f"Stop at about iteration {gap.since}, or use the best checkpoint.",
        evidence={"best at": float(gap.since)},
        series="loss",
    )
