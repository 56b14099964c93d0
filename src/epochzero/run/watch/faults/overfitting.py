"""The model does much better on its training data than on others."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import overfits
from epochzero.run.watch.history import History
from epochzero.run.watch.model import Finding

__all__ = ["find"]


def find(history: History) -> Iterable[Finding]:
    """What the evaluations say beside the training."""
    gap = overfits(history)
    if gap is None:
        return
    yield Finding(
        "overfitting",
        gap.since,
        f"{gap.text[0].upper()}{gap.text[1:]}",
        confidence=0.7,
        series="loss",
    )
