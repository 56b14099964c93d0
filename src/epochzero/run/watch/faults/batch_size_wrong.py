"""So large that there are too few steps, or so small that they are noise."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from epochzero.run.watch.faults._signals import (
    course,
    does_well,
    evaluations_are_worse,
    is_known_loss,
)
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.training import batch_size_place
from epochzero.run.watch.model import TrainingFinding

_MANY = 512
_FEW = 40


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """The size of a batch compared with the data set, with what it does to the loss."""
    found = course(history)
    if found is None or does_well(history) or not history.ended:
        return
    sizes = [
        iteration.inputs[0]["shape"][0]
        for iteration in history.iterations
        if iteration.inputs and iteration.inputs[0]["shape"]
    ]
    loader = next(iter(history.loaders), None)
    examples = (loader or {}).get("examples") or 0
    if not sizes:
        return
    size = int(np.median(sizes))
    place = batch_size_place(history)
    if (
        size <= 2
        and _batch_of_loss(history) <= 2
        and history.count > 30
        and found.roughness > 0.35
        and is_known_loss(history)
        and (found.fall < 0.5 or evaluations_are_worse(history))
    ):
        yield TrainingFinding(
            "batch_size_wrong", 0,
            f"Each step learns from {size} example{'s' if size > 1 else ''}, and the loss changes by "
f"{percent(found.roughness)} from one step to the next.",
            place=place, confidence=0.66, fix="Use batches of 32.",
            evidence={"batch": float(size)}, series="loss",
        )  # fmt: skip
    elif not history.loaders and size >= _MANY and history.count <= _FEW and found.slope > 0.03:
        yield TrainingFinding(
            "batch_size_wrong", 0,
            (f"A batch has {size} examples, the whole training has {history.count} steps, and the loss is still "
"decreasing."),
            place=place, confidence=0.56, fix="Use batches of 32.",
            evidence={"batch": float(size)}, series="loss",
        )  # fmt: skip
    elif (
        examples
        and size >= 0.45 * examples
        and examples >= 200
        and history.count <= 120
        and found.slope > 0.03
    ):
        yield TrainingFinding(
            "batch_size_wrong", 0,
            f"A batch is {percent(size / examples)} of the data: the whole training has {history.count} steps, "
"and the loss is still decreasing.",
            place=place, confidence=0.75, fix=f"Use batches of {max(16, min(64, examples // 30))}.",
            evidence={"batch": float(size), "examples": float(examples)}, series="loss",
        )  # fmt: skip


def _batch_of_loss(history: TrainingHistory) -> int:
    """Examples that a loss is of; an input may begin with another dimension."""
    sizes = [it.target["shape"][0] for it in history.iterations if it.target.get("shape")]
    return int(np.median(sizes)) if sizes else 1
