"""Training ends while the loss still falls."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import course, does_well, moved
from epochzero.run.watch.history import History
from epochzero.run.watch.lines import epochs_place
from epochzero.run.watch.model import Finding

__all__ = ["find"]

_SLOPE = 0.1


def find(history: History) -> Iterable[Finding]:
    """At the end of the training: the last fifth fell by much, and much is left."""
    found = course(history)
    if found is None or not history.ended or does_well(history) or not found.finite:
        return
    if not found.fall > 0.02 or found.slope < _SLOPE or found.roughness > 0.6:
        return
    ways = moved(history)
    if not ways or max(ways.values()) < 0.3:
        return
    yield Finding(
        "epochs_too_few",
        history.count,
        f"The last fifth of the {history.count} iterations made {found.slope:.0%} of all the progress: "
        "the training ends in the middle of learning.",
        place=epochs_place(history),
        confidence=0.53,
        fix="Train at least three times as long, until the evaluation loss stops falling.",
        evidence={"progress of the last fifth": found.slope, "loss": found.end},
        series="loss",
        causes=("underfitting", "slow_learning"),
    )
