"""The training loss falls, but far too slowly."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import course
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import History
from epochzero.run.watch.model import Finding

__all__ = ["find"]


def find(history: History) -> Iterable[Finding]:
    """The training loss falls, but far too slowly."""
    found = course(history)
    if found is None or found.count < 60 or not 0.005 < found.fall < 0.3 or found.slope < 0.1:
        return
    yield Finding(
        "slow_learning",
        0,
        f"After {history.count} iterations the loss has fallen by {percent(found.fall)} only, and still falls.",
        confidence=0.6,
        evidence={"first loss": found.start, "last loss": found.end},
        series="loss",
    )
