"""Too few examples for the model: it learns them by heart."""

from __future__ import annotations

import math
from collections.abc import Iterable

from epochzero.run.watch.faults._signals import overfits
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.data import size_place
from epochzero.run.watch.model import TrainingFinding

_FEW = 100


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """A gap to the evaluations, with few examples that are different, and many parameters."""
    gap = overfits(history)
    rows = {
        row
        for iteration in history.iterations
        for tensor in iteration.inputs[:1]
        for row in tensor.get("rows", ())
    }
    sizes = [loader["examples"] for loader in history.loaders if loader["examples"]]
    count = min([*sizes[:1], len(rows)] if rows and not sizes else sizes[:1] or [len(rows)])
    parameters = sum(math.prod(param.shape) for param in history.parameters if param.trainable)
    if gap is None or not count or count > _FEW or len(history.iterations) < 10:
        return
    yield TrainingFinding(
        "data_too_small",
        gap.since,
        f"{count} examples for {parameters:,} parameters: {gap.text}",
        place=size_place(history),
        confidence=0.72,
        fix="Collect or augment examples, start from a pretrained model, or use a much smaller one with dropout "
        "and weight decay.",
        evidence={"examples": float(count), "parameters": float(parameters)},
    )
