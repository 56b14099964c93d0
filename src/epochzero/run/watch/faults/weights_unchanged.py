"""Steps are made, and weights stay as they are."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import relative_updates
from epochzero.run.watch.history import History
from epochzero.run.watch.model import Finding

__all__ = ["find"]


def find(history: History) -> Iterable[Finding]:
    """The updates of all weights over the iterations looked at."""
    updates = relative_updates(history)
    if len(history.iterations) < 5 or not updates or max(updates.values()) > 1e-9:
        return
    yield Finding(
        "weights_unchanged",
        0,
        f"No step of {len(history.iterations)} looked at has changed a weight.",
        confidence=0.85,
        series="update",
    )
