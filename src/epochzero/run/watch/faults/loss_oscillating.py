"""The training loss jumps by more than it falls."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import course, does_well
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import History
from epochzero.run.watch.model import Finding

__all__ = ["find"]


def find(history: History) -> Iterable[Finding]:
    """The training loss jumps by more than it falls."""
    found = course(history)
    if found is None or found.count < 30 or found.roughness < 0.35 or does_well(history):
        return
    yield Finding(
        "loss_oscillating",
        0,
        f"From one iteration to the next the loss jumps by {percent(found.roughness)} of itself.",
        confidence=0.6,
        evidence={"first loss": found.start, "last loss": found.end},
        series="loss",
    )
