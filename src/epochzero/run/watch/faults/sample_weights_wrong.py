"""Weights that take examples or classes out of the loss."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import (
    chance_loss,
    classes,
    course,
    does_well,
    is_classifier,
    train_accuracy,
)
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines import loss_place, place_of
from epochzero.run.watch.model import TrainingFinding

_APART = 1000.0


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Class weights that are zero or far apart; a loss that is zero while nothing was learned."""
    for loss in history.losses:
        weight = loss.get("weight") or []
        numbers = [float(value) for value in weight]
        if numbers and (min(numbers) <= 0 or max(numbers) > _APART * min(numbers)):
            yield TrainingFinding(
                "sample_weights_wrong",
                0,
                f"The class weights range from {min(numbers):g} to {max(numbers):g}.",
                place=loss_place(history, "weight", "pos_weight"),
                confidence=0.45 if does_well(history) else 0.9,
                fix="Weight each class by the inverse of its frequency, and none by zero.",
                evidence={"least": min(numbers), "most": max(numbers)},
            )  # fmt: skip
            return
    yield from _divided_by_nothing(history)
    found = course(history)
    accuracy = train_accuracy(history)
    chance = chance_loss(history)
    shares = classes(history)
    most = max(shares.values(), default=1.0)
    if (
        found
        and chance
        and accuracy is not None
        and is_classifier(history)
        and found.end < 0.3 * chance
        and found.fall > 0.5
        and accuracy < min(0.8, most + 0.05)
    ):
        yield TrainingFinding(
            "sample_weights_wrong",
            0,
            f"The loss is {found.end:.3g}, far below the {chance:.3g} of guessing, but only {percent(accuracy)} "
            "of the examples are classified correctly: most examples have almost no weight.",
            place=loss_place(history, "weight", "pos_weight"),
            confidence=0.84,
            fix="Check the weights and masks that the loss is multiplied by.",
            evidence={"loss": found.end, "accuracy": accuracy},
        )
    elif found and found.start == found.end == 0 and (accuracy is None or accuracy < 0.9):
        yield TrainingFinding(
            "sample_weights_wrong",
            0,
            "The loss is exactly zero from the first iteration on.",
            place=loss_place(history, "weight", "pos_weight"),
            confidence=0.6,
            fix="Check the weights and masks that the loss is multiplied by.",
        )


def _divided_by_nothing(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """A loss that is no number, since the weights by whose sum it is divided are all zero."""
    for record in history.nonfinite:
        for operator in record.get("operators", ()):
            divisor = operator["saved"].get("other", {})
            if (
                operator["operator"] == "DivBackward0"
                and divisor.get("zeros", 0) > 0
                and operator["depth"] <= 3
            ):
                yield TrainingFinding(
                    "sample_weights_wrong",
                    int(record["iteration"]),
                    "The loss is divided by a sum of zero: all example weights are zero.",
                    place=place_of(record),
                    confidence=0.82,
                    fix="Check the weights and masks of the examples; skip batches whose weights sum to zero.",
                )
                return
