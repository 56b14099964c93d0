"""Inputs of a scale that layers are not made for: not normalized, or normalized twice."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import NORMALIZATIONS, does_well, is_harmed
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.data import input_place
from epochzero.run.watch.model import TrainingFinding

_LARGE = 10.0
_APART = 100.0
_SMALL = 0.02


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Large or shifted inputs, columns of very different width, or next to nothing."""
    looked = [iteration.inputs[0] for iteration in history.iterations if iteration.inputs]
    looked = [record for record in looked if "float" in record["dtype"] and record["std"] > 0]
    if len(looked) < 3 or _is_normalized_first(history):
        return
    first = looked[len(looked) // 2]
    spread, mean = first["std"], abs(first["mean"])
    # Beside the usual column, not the narrowest: pixels at a border hardly vary in any data set.
    apart = first.get("widest", 0.0) / max(first.get("usual_width", 1.0), 1e-12)
    widest = first.get("widest", 0.0)
    if max(spread, mean) > _LARGE and (widest == 0 or widest > _LARGE or mean > _LARGE):
        text = f"The inputs have a mean of {first['mean']:.4g} and a standard deviation of {spread:.4g}"
        certain = 0.9 if max(spread, mean) > 30 else 0.7
    elif apart > _APART and widest > 3:
        text = (
            f"The standard deviation of the input's widest column is {apart:,.0f} times the median"
        )
        certain = 0.7
    elif spread < _SMALL and mean < _SMALL:
        text = f"The inputs are tiny: a standard deviation of {spread:.2g}"
        certain = 0.75
    elif spread * 5 < mean:
        text = (
            f"The mean of the inputs, {first['mean']:.3g}, is large compared with their standard deviation, "
            f"{spread:.3g}"
        )
        certain = 0.55
    else:
        return
    yield TrainingFinding(
        "input_scale_wrong",
        0,
        f"{text}; layers expect a mean of about 0 and a standard deviation of about 1.",
        place=input_place(history),
        confidence=certain - (0.45 if _does_no_harm(history) else 0.0),
        fix="Subtract the training data's mean from each column or channel and divide by the standard deviation; "
"use the same values for training and evaluation.",
        evidence={"mean": first["mean"], "spread": spread},
    )  # fmt: skip


def _does_no_harm(history: TrainingHistory) -> bool:
    """Whether the training does what it should, or this is unknown: rewards and positions have a scale of their own."""
    return does_well(history) or is_harmed(history) is None


def _is_normalized_first(history: TrainingHistory) -> bool:
    """Whether the first layer that is called brings the inputs to scale itself."""
    kinds = (kind for _, kind in history.order if not kind.startswith("Random"))
    return next(kinds, "").startswith((*NORMALIZATIONS, "Embedding", "Normalization", "Rescaling"))
