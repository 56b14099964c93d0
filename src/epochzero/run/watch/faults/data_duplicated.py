"""The same few examples come again and again."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import examples_in
from epochzero.run.watch.history import History
from epochzero.run.watch.lines import duplication_place
from epochzero.run.watch.model import Finding

__all__ = ["find"]

_LEAST = 64


def find(history: History) -> Iterable[Finding]:
    """Distinct rows among those of the first iterations, before an epoch can have ended."""
    rows: list[str] = []
    size = max((one["examples"] or 0 for one in history.loaders), default=0)
    for one in history.iterations:
        if one.inputs and one.inputs[0]["shape"] and one.inputs[0].get("rows"):
            tensor = one.inputs[0]
            rows += examples_in(tensor)
        if len(rows) >= max(_LEAST, min(size, 512)):
            break
    if len(rows) < _LEAST or size < len(rows):
        return
    sampled = any("Weighted" in str(one["sampler"]) for one in history.loaders)
    tested = [examples_in(t) for one in history.evaluations for t in one.inputs[:1]]
    # Some are drawn more often on purpose, and some data are of few kinds.
    if sampled or any(len(set(batch)) < 0.8 * len(batch) for batch in tested):
        return
    distinct = len(set(rows))
    if distinct > 0.6 * len(rows):
        return
    yield Finding(
        "data_duplicated",
        0,
        f"Of the first {len(rows)} examples only {distinct} are different, though the data set has "
        f"{size}.",
        place=duplication_place(history),
        confidence=0.85,
        fix="Look at how the data set is put together: an index that does not move, a list that is "
        "repeated, sampling with replacement.",
        evidence={"examples": float(len(rows)), "different": float(distinct)},
        causes=("overfitting", "loss_vanishing", "validation_diverging"),
    )
