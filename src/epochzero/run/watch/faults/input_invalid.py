"""Inputs that are no numbers, or the same everywhere: the model cannot learn from them."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import course, does_well, is_known_loss
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.data import input_place
from epochzero.run.watch.model import TrainingFinding

_LOOKS = 3
_MOST = 0.5
"""Share of columns. A column that never varies does no harm, as the border of an image: the others must be few."""


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """NaN or infinity among the inputs, one value in all of a batch, or columns that never vary."""
    for iteration in history.iterations:
        for tensor in iteration.inputs:
            if tensor.get("nonfinite", 0) > 0:
                yield TrainingFinding(
                    "input_invalid",
                    iteration.number,
                    f"{percent(tensor['nonfinite'])} of the input values of iteration {iteration.number} are not finite.",
                    place=input_place(history),
                    confidence=0.97,
                    fix="Find the source of NaN in data loading: a division, a logarithm or a missing value. Drop or fill "
                    "these examples.",
                    evidence={"not finite": tensor["nonfinite"]},
                )
                return
    looked = [it.inputs[0] for it in history.iterations if it.inputs]
    if len(looked) < _LOOKS or not all("float" in record["dtype"] for record in looked):
        return
    if all(record["min"] == record["max"] for record in looked):
        yield TrainingFinding(
            "input_invalid",
            0,
            f"All input values are equal: {looked[0]['min']:g}.",
            place=input_place(history),
            confidence=0.95,
            fix="Check the preprocessing of the data.",
            evidence={"value": looked[0]["min"]},
        )
    elif all(r.get("constant_columns", 0) > _MOST for r in looked) and _learns_nothing(history):
        share = looked[0]["constant_columns"]
        yield TrainingFinding(
            "input_invalid",
            0,
            f"{percent(share)} of the input columns never vary, and the loss stays at its initial value.",
            place=input_place(history),
            confidence=0.78,
            fix="Check the preprocessing of the data.",
            evidence={"constant columns": share},
        )
    elif all(r.get("constant_columns", 0) > _MOST for r in looked) and not does_well(history):
        share = looked[0]["constant_columns"]
        yield TrainingFinding(
            "input_invalid",
            0,
            f"{percent(share)} of the input columns never vary.",
            place=input_place(history),
            confidence=0.6 if all(record["zeros"] > 0.9 for record in looked) else 0.45,
            fix="Check the preprocessing of the data.",
            evidence={"constant columns": share},
        )


def _learns_nothing(history: TrainingHistory) -> bool:
    found = course(history)
    return found is not None and is_known_loss(history) and history.ended and found.fall < 0.03
