"""Training ends while the loss still falls."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import (
    LossCourse,
    chance_loss,
    classes,
    course,
    does_well,
    relative_updates,
    train_accuracy,
)
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.training import epochs_place
from epochzero.run.watch.model import TrainingFinding

_SLOPE = 0.1
_FEW = 40
_STEP = 1e-3


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """At the end of the training: the last fifth fell by much, and much is left."""
    found = course(history)
    if found is None or not history.ended or does_well(history) or not found.finite:
        return
    # A loss nearly always falls still: it is a fault where not half of what can be reached was reached.
    if _is_half_way(history, found):
        return
    few = history.count <= _FEW and found.fall > 0.03 and found.slope > 0
    falls = found.fall > 0.02 and found.slope > _SLOPE and found.roughness < 0.6
    if not few and not falls:
        return
    # Where steps are tiny it is not their number that is too small.
    if max(relative_updates(history).values(), default=0.0) < _STEP:
        return
    yield TrainingFinding(
        "epochs_too_few",
        history.count,
        f"After {history.count} iterations the loss has decreased from {found.start:.3g} to {found.end:.3g} "
        f"and is still decreasing: the last fifth accounts for {percent(found.slope)} of the total decrease.",
        place=epochs_place(history),
        confidence=0.53,
        fix="Train at least three times as long, until the evaluation loss stops decreasing.",
        evidence={"progress of the last fifth": found.slope, "loss": found.end},
        series="loss",
    )


def _is_half_way(history: TrainingHistory, found: LossCourse) -> bool:
    """Whether accuracy, or else the loss, is closer to that of a perfect model than to that of a trivial one."""
    accuracy, shares, chance = train_accuracy(history), classes(history), chance_loss(history)
    if accuracy is not None and shares:
        return accuracy > 0.5 * (1 + max(shares.values()))
    return chance is not None and found.end < 0.5 * chance
