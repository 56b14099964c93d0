"""The same few examples come again and again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from epochzero.run.watch.faults._signals import apart_at_once, examples_in
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.data import duplication_place
from epochzero.run.watch.model import TrainingFinding

_LEAST = 64
_APART = 0.15


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Distinct rows before an epoch can have ended; where rows are not known, what they taught by then."""
    rows = _first_rows(history)
    if len(rows) >= _LEAST:
        yield from _alike(history, rows)
    else:
        yield from _known_by_heart(history)


def _first_rows(history: TrainingHistory) -> list[str]:
    rows: list[str] = []
    for iteration in history.iterations:
        if iteration.inputs and iteration.inputs[0]["shape"] and iteration.inputs[0].get("rows"):
            rows += examples_in(iteration.inputs[0])
        if len(rows) >= max(_LEAST, min(_size(history), 512)):
            break
    return rows


def _size(history: TrainingHistory) -> int:
    """Examples in the largest data set; 0 where none is known."""
    return max((loader["examples"] or 0 for loader in history.loaders), default=0)


def _alike(history: TrainingHistory, rows: list[str]) -> Iterable[TrainingFinding]:
    size = _size(history)
    if size < len(rows):
        return
    sampled = any("Weighted" in str(loader["sampler"]) for loader in history.loaders)
    tested = [examples_in(t) for evaluation in history.evaluations for t in evaluation.inputs[:1]]
    # Some are drawn more often on purpose, and some data are of few kinds.
    if sampled or any(len(set(batch)) < 0.8 * len(batch) for batch in tested):
        return
    counts = Counter(rows).values()
    distinct = len(counts)
    # Repeats that are nearly all of a few examples are frequent kinds, as short sentences are; copies come equally often.
    uneven = max(counts) > 6 * len(rows) / distinct and sum(n == 1 for n in counts) > distinct / 2
    if distinct > 0.6 * len(rows) or uneven:
        return
    yield _finding(
        history,
        f"Of the first {len(rows)} examples only {distinct} are different, though the data set has "
        f"{size}.",
        0.85,
        {"examples": float(len(rows)), "different": float(distinct)},
    )


def _known_by_heart(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """A model that is better in its first pass over the data than in an evaluation has seen them before."""
    gap = apart_at_once(history)
    if gap is not None and gap > _APART:
        yield _finding(
            history,
            f"In the first epoch, training accuracy is {percent(gap)} higher than in the evaluation during that "
            "epoch, although no example was seen before: the data set must contain duplicates.",
            0.7,
            {"gap": gap},
        )


def _finding(
    history: TrainingHistory, text: str, confidence: float, evidence: dict[str, float]
) -> TrainingFinding:
    return TrainingFinding(
        "data_duplicated",
        0,
        text,
        place=duplication_place(history),
        confidence=confidence,
        fix="Check how the data set is built: a constant index, a repeated list, or sampling with replacement.",
        evidence=dict(evidence),
    )
