"""Labels of a range that the output or the loss is not made for."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from epochzero.run.watch.faults._signals import (
    OF_CLASSES,
    classes,
    course,
    does_well,
    evaluations,
    evaluations_are_worse,
    is_classifier,
    judged,
)
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.data import label_place
from epochzero.run.watch.model import TrainingFinding

_FAR = 8.0


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Labels outside of what the loss takes, a class that never occurs at the end, or far targets."""
    looked = [iteration for iteration in judged(history) if iteration.target]
    if len(looked) < 3:
        return
    yield from _other_than_evaluated(history)
    function = looked[0].loss_function
    low = min(iteration.target["min"] for iteration in looked)
    high = max(iteration.target["max"] for iteration in looked)
    found = course(history)
    if function == "ctc_loss" and low <= 0 and found is not None and found.end < 0:
        yield _finding(
            history,
            f"The CTC loss is negative, {found.end:.3g}: labels starting at {low:g} include the blank.",
            0.9,
            "Labels must start at 1 if the blank is 0.",
        )
    elif function.startswith("binary_cross_entropy") and (low < -0.01 or high > 1.01):
        yield _finding(
            history,
            f"{function} expects labels from 0 to 1, but they range from {low:g} to {high:g}.",
            0.95,
            "Map the labels to 0 and 1.",
        )
    elif function in OF_CLASSES and len(looked[0].output["shape"]) > 1:
        yield from _classes(history, looked[0].output["shape"][1])
    elif function in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
        mean = float(np.mean([iteration.target["mean"] for iteration in looked]))
        spread = float(np.mean([iteration.target["std"] for iteration in looked]))
        begins = looked[0].output
        near = abs(begins["mean"] - mean) < spread and begins.get("std", 0.0) > 0.1 * spread
        if max(abs(mean), spread) > _FAR and not near and not does_well(history):
            yield _finding(
                history,
                f"The targets have a mean of {mean:.4g} and a standard deviation of {spread:.4g}; outputs start at "
                f"about {looked[0].output['mean']:.3g}.",
                0.72 if max(abs(mean), spread) > 30 else 0.6,
                "Scale the targets to mean 0 and standard deviation 1, and invert the scaling for predictions.",
            )


def _other_than_evaluated(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Targets of the training that lie where those of the evaluations do not."""
    trained = [iteration.target for iteration in history.iterations if iteration.target]
    tested = [evaluation.target for evaluation in evaluations(history) if evaluation.target]
    if len(trained) < 3 or len(tested) < 2 or is_classifier(history):
        return
    mean, spread = (float(np.median([r[what] for r in trained])) for what in ("mean", "std"))
    other, width = (float(np.median([r[what] for r in tested])) for what in ("mean", "std"))
    wider, narrower = max(spread, width, 1e-12), max(min(spread, width), 1e-12)
    apart = abs(mean - other) > 1.5 * wider or wider > 4 * narrower
    if apart and evaluations_are_worse(history) is not False:
        yield _finding(
            history,
            f"Training targets have mean {mean:.3g} and standard deviation {spread:.3g}, evaluation targets "
            f"{other:.3g} and {width:.3g}.",
            0.85,
            "Scale both with the mean and standard deviation of the training data.",
        )


def _classes(history: TrainingHistory, outputs: int) -> Iterable[TrainingFinding]:
    found = classes(history)
    looked = sum(sum(it.target.get("classes", {}).values()) for it in history.iterations)
    others = set(found) == set(range(1, outputs))
    if others and looked > 20 * outputs and not does_well(history):
        yield _finding(
            history,
            f"Class 0 of {outputs} never occurs; the labels range from {min(found)} to {max(found)}.",
            0.8,
            "Labels must start at 0: subtract 1 and remove one output.",
        )


def _finding(history: TrainingHistory, text: str, confidence: float, fix: str) -> TrainingFinding:
    return TrainingFinding(
        "label_range_wrong",
        0,
        text,
        place=label_place(history),
        confidence=confidence,
        fix=fix,
    )  # fmt: skip
