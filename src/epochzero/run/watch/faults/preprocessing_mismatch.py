"""Validation data are prepared in another way than training data."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from epochzero.run.watch.faults._signals import (
    classes,
    evaluations,
    evaluations_are_worse,
    is_augmented,
)
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.data import preprocessing_place
from epochzero.run.watch.model import TrainingFinding

_APART = 2.5
_FAR = 10.0
_OTHER_SHARE = 0.4
"""A class that is this much more frequent in the inspected batches than in the training."""


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Mean and spread of the inputs in training and in evaluations."""
    trained = [iteration.inputs[0] for iteration in history.iterations if iteration.inputs]
    tested = [evaluation.inputs[0] for evaluation in evaluations(history) if evaluation.inputs]
    trained = [record for record in trained if "float" in record["dtype"]]
    tested = [record for record in tested if "float" in record["dtype"]]
    tested = [r for r in tested if trained and r["shape"][1:] == trained[0]["shape"][1:]]
    if len(trained) < 3 or len(tested) < 2 or not _are_comparable(history):
        return
    mean, spread = (float(np.median([r[what] for r in trained])) for what in ("mean", "std"))
    other, width = (float(np.median([r[what] for r in tested])) for what in ("mean", "std"))
    # Batches differ among themselves: what differs no more is no other preprocessing.
    usual = float(np.std([record["mean"] for record in trained])) + 1e-9
    shift = abs(mean - other) / max(spread, width, 1e-9)
    shifted = shift > 0.5 and abs(mean - other) > 4 * usual
    ratio = max(spread, 1e-9) / max(width, 1e-9)
    if not shifted and (1 / _APART < ratio < _APART or (ratio > 1 and is_augmented(history))):
        return
    yield TrainingFinding(
        "preprocessing_mismatch",
        evaluations(history)[0].iteration,
        f"Training inputs have mean {mean:.3g} and standard deviation {spread:.3g}, evaluation inputs "
f"{other:.3g} and {width:.3g}.",
        confidence=_confidence(history, shift, ratio),
        place=preprocessing_place(history),
        fix="Preprocess both with the same function and the statistics of the training data.",
        evidence={"training mean": mean, "evaluation mean": other, "training spread": spread,
                  "evaluation spread": width},
    )  # fmt: skip


def _are_comparable(history: TrainingHistory) -> bool:
    """Whether the inspected batches of the evaluations have the classes of the training: the first one of sorted data
    has one of them only, whose examples differ from the others.
    """
    shares = classes(history)
    tested = [
        {int(label): count for label, count in counts.items()}
        for evaluation in evaluations(history)
        if (counts := evaluation.target.get("classes"))
    ]
    if len(shares) < 2 or not tested:
        return True
    total = sum(sum(counts.values()) for counts in tested)
    return all(
        abs(sum(counts.get(label, 0.0) for counts in tested) / total - share) < _OTHER_SHARE
        for label, share in shares.items()
    )


def _confidence(history: TrainingHistory, shift: float, ratio: float) -> float:
    """Other data are no other preparation: it must be far apart, or do harm."""
    worse, far = evaluations_are_worse(history), shift > 1 or not 0.4 < ratio < 2.5
    if worse is False:
        return 0.55 if not 1 / _FAR < ratio < _FAR else 0.4
    if worse is None and not far:
        return 0.4
    return 0.9 if far else 0.72
