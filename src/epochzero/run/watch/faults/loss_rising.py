"""The training loss grows."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import course
from epochzero.run.watch.history import History
from epochzero.run.watch.model import Finding

__all__ = ["find"]


def find(history: History) -> Iterable[Finding]:
    """The training loss grows."""
    found = course(history)
    if found is None or found.count < 20 or found.rise <= 0.1 * abs(found.start):
        return
    yield Finding(
        "loss_rising",
        0,
        f"The loss was {found.start:.4g} and is {found.end:.4g} after {history.count} iterations.",
        confidence=0.8,
        evidence={"first loss": found.start, "last loss": found.end},
        series="loss",
    )
