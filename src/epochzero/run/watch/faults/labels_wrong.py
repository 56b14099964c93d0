"""Labels do not belong to their inputs: nothing can be learned from them but by heart."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from epochzero.run.watch.faults._signals import (
    chance_loss,
    classes,
    course,
    does_well,
    evaluations,
    first_accuracy,
    is_augmented,
    is_harmed,
    learns_nothing,
)
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.data import label_place
from epochzero.run.watch.model import TrainingFinding

_PAIRS = 200
_MORE = 0.08
_LEAST = 0.01
_EARLY = 200
_RARE_ARE_OTHERS = 0.85


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Neighbors agree no more than by chance, or the same example comes with different labels."""
    yield from _contradictions(history)
    looked = [it.likeness for it in history.iterations if it.likeness.get("pairs")]
    pairs = sum(record["pairs"] for record in looked)
    chance = sum(record["chance"] * record["pairs"] for record in looked) / max(1, pairs)
    # Where no two examples have the same label, as in pairs of one batch, none can be compared.
    if pairs < _PAIRS or chance < _LEAST:
        yield from _by_exclusion(history)
        return
    agreement = sum(record["agreement"] * record["pairs"] for record in looked) / pairs
    yield from _other_than_evaluated(history, agreement - chance)
    if agreement > chance + _MORE * (1 - chance) or does_well(history):
        return
    most = max(classes(history).values(), default=1.0)
    # Of rare classes neither neighbors nor accuracy show that they are learned, but the loss does.
    harmed = is_harmed(history)
    if harmed is False or (harmed is None and most > _RARE_ARE_OTHERS):
        return
    tested = [a for ev in evaluations(history) if (a := first_accuracy(ev)) is not None]
    # Early a loss lies above that of chance, whatever the labels are.
    if not history.ended and (len(tested) < 5 or history.count < _EARLY):
        return
    # Raw inputs may hide a class that a network finds: what it generalizes decides.
    if tested and max(tested) > most + 0.15 * (1 - most):
        return
    yield TrainingFinding(
        "labels_wrong",
        0,
        f"The nearest neighbor has the same label in {percent(agreement)} of cases; by chance it would in "
        f"{percent(chance)}. Evaluations are no better than chance.",
        place=label_place(history, order=True),
        confidence=0.7 if tested else 0.4,
        fix=(
            "Print inputs with their labels. Check whether only the inputs or only the labels are sorted, "
            "shuffled or truncated."
        ),
        evidence={"agreement": agreement, "chance": chance},
    )


def _by_exclusion(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Where examples cannot be compared: nothing is learned, and whatever else is wrong has stronger signs."""
    if learns_nothing(history):
        found, chance = course(history), chance_loss(history)
        assert found is not None
        yield TrainingFinding(
            "labels_wrong",
            0,
            f"Weights change, but after {history.count} iterations the loss is {found.end:.4g}; if labels were "
            f"independent of inputs, it would be {chance:.4g}.",
            place=label_place(history, order=True),
            confidence=0.54,
            fix=(
                "Print inputs with their labels. Check whether only the inputs or only the labels are sampled, "
                "sorted or truncated."
            ),
            series="loss",
        )


def _contradictions(history: TrainingHistory) -> Iterable[TrainingFinding]:
    seen: dict[str, int] = {}
    again = different = 0
    since = 0
    for iteration in history.iterations:
        if (
            not iteration.inputs
            or not iteration.row_labels
            or "float" not in iteration.inputs[0]["dtype"]
        ):
            continue
        for row, label in zip(
            iteration.inputs[0].get("rows", ()), iteration.row_labels, strict=False
        ):
            if row in seen:
                again += 1
                if seen[row] != label:
                    different += 1
                    since = since or iteration.number
            seen[row] = label
    by_chance = 1 - sum(share * share for share in classes(history).values())
    # Labels that people gave, or actions in one state, differ as well, but less than by chance.
    if again >= 32 and different > 0.5 * max(by_chance, 0.2) * again and not does_well(history):
        yield TrainingFinding(
            "labels_wrong",
            since,
            f"Repeated examples have a different label in {percent(different / again)} of cases.",
            place=label_place(history, order=True),
            confidence=0.92,
            fix="Inputs and labels are shuffled separately: shuffle both with the same permutation.",
            evidence={"again": float(again), "different": float(different)},
        )


def _other_than_evaluated(history: TrainingHistory, gain: float) -> Iterable[TrainingFinding]:
    """Neighbors that agree in the evaluations far more than in the training: a part is labeled wrongly."""
    tested = [ev.likeness for ev in evaluations(history) if ev.likeness.get("pairs")]
    pairs = sum(record["pairs"] for record in tested)
    if pairs < _PAIRS or does_well(history) or is_augmented(history):
        return
    # Among more examples there is a nearer one.
    trained = [it.likeness["pairs"] for it in history.iterations if it.likeness.get("pairs")]
    if np.mean(trained) < 0.5 * pairs / len(tested):
        return
    other = sum((r["agreement"] - r["chance"]) * r["pairs"] for r in tested) / pairs
    if other > 0.25 and gain < 0.5 * other:
        yield TrainingFinding(
            "labels_wrong",
            0,
            f"In training data, the nearest neighbor has the same label {percent(gain)} more often than by "
f"chance; in evaluation data, {percent(other)}. Many training labels are wrong.",
            place=label_place(history, order=True),
            confidence=0.78,
            fix="Print inputs with their labels, and compare the labels of both splits.",
            evidence={"training": gain, "evaluations": other},
        )  # fmt: skip
