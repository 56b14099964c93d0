"""Validation examples are among the training examples: the validation says too much."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import evaluations, examples_in
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import Evaluation, TrainingHistory
from epochzero.run.watch.lines.data import split_place
from epochzero.run.watch.model import TrainingFinding

_SHARE = 0.3
_LOOKS = 3


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Rows of the evaluations, by their fingerprints, that were trained on."""
    trained = {
        print_of
        for iteration in history.iterations
        for tensor in iteration.inputs[:1]
        for print_of in examples_in(tensor)
    }
    measured = [ev for ev in evaluations(history) if not _is_looked_up_in(ev)]
    batches = [examples_in(t) for evaluation in measured for t in evaluation.inputs[:1]]
    distinct = {print_of for batch in batches for print_of in batch}
    if len(history.iterations) < _LOOKS or len(distinct) < 16:
        return
    # Where examples of one batch are alike, those of two parts may be as well.
    if any(len(set(batch)) < 0.8 * len(batch) for batch in batches):
        return
    common = len(distinct & trained) / len(distinct)
    if common < _SHARE:
        return
    # An evaluation on training data next to another one is no leak.
    apart = [
        ev
        for ev in evaluations(history)
        if ev.inputs and ev.inputs[0].get("rows") and not trained & set(ev.inputs[0]["rows"])
    ]
    if apart:
        return
    yield TrainingFinding(
        "data_leaked",
        evaluations(history)[0].iteration,
        f"{percent(common)} of the evaluation examples were seen in training.",
        place=split_place(history),
        confidence=0.8,
        fix="Split by an ID of the examples before any sampling or copying, and test that the splits are disjoint.",
        evidence={"share": common, "examples": float(len(distinct))},
    )


def _is_looked_up_in(evaluation: Evaluation) -> bool:
    """Whether fewer examples are measured than the first batch has: neighbors are looked up among these."""
    return (
        bool(evaluation.inputs)
        and 0 < evaluation.examples < (evaluation.inputs[0]["shape"] or [0])[0]
    )
