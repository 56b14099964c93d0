"""Examples come sorted by their label: each batch teaches one class and takes back the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from epochzero.run.watch.faults._signals import OF_CLASSES, accuracy_gap, classes
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import Record, TrainingHistory
from epochzero.run.watch.lines.data import order_place
from epochzero.run.watch.model import TrainingFinding

_LOOKS = 6
_BATCH = 4


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """How often the label changes from example to example, compared with chance."""
    yield from _never_seen(history)
    looked = [
        it.target
        for it in history.iterations
        if it.target.get("changes") is not None and (it.target["shape"] or [0])[0] >= _BATCH
    ]
    shares = classes(history)
    if (
        len(looked) < _LOOKS
        or len(shares) < 2
        or len(looked[0]["shape"]) > 1 < looked[0]["shape"][-1]
    ):
        return
    expected = 1 - sum(share * share for share in shares.values())
    changes = float(np.mean([record["changes"] for record in looked]))
    if expected < 0.1 or changes > 0.35 * expected or _variety(looked) > 0.7 * expected:
        return
    yield TrainingFinding(
        "not_shuffled",
        0,
        f"The label changes from one example to the next in {percent(changes)} of cases; in shuffled data it "
f"would in {percent(expected)}.",
        place=order_place(history),
        confidence=0.93,
        fix="Shuffle the training examples in each epoch: DataLoader(..., shuffle=True).",
        evidence={"changes": changes, "expected": expected},
    )  # fmt: skip


def _variety(looked: Sequence[Record]) -> float:
    """How often two examples of one batch have different labels: such a batch teaches all of them."""
    found = []
    for record in looked:
        counts = np.array(list(record.get("classes", {}).values()), dtype=float)
        if counts.sum():
            found.append(1 - float(((counts / counts.sum()) ** 2).sum()))
    return float(np.mean(found)) if found else 0.0


def _never_seen(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Classes that the model has outputs for and the training no examples, and evaluations that fail."""
    seen = [iteration for iteration in history.iterations if iteration.loss_function in OF_CLASSES]
    shares, gap = classes(history), accuracy_gap(history)
    if len(seen) < _LOOKS or len(seen[0].output.get("shape", ())) != 2 or gap is None or gap < 0.2:
        return
    outputs = seen[0].output["shape"][1]
    examples = sum(sum(iteration.target.get("classes", {}).values()) for iteration in seen)
    absent = sorted(set(range(outputs)) - set(shares))
    rows = {row for iteration in seen for t in iteration.inputs[:1] for row in t.get("rows", ())}
    if not absent or outputs > 50 or examples < 20 * outputs or len(rows) < 20 * outputs:
        return
    yield TrainingFinding(
        "not_shuffled",
        0,
        f"The training data have no example of class {absent[0]} of {outputs}, and evaluations are "
        f"{percent(gap)} worse: data sorted by label were split without shuffling.",
        place=order_place(history),
        confidence=0.92,
        fix="Shuffle before the split, or use a stratified split.",
        evidence={"classes": float(outputs), "absent": float(len(absent))},
    )
