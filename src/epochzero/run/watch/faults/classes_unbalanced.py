"""Nearly all examples are of one class, and nothing makes up for it."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import (
    classes,
    evaluations_are_worse,
    is_classifier,
    is_harmed,
)
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.data import classes_place
from epochzero.run.watch.model import TrainingFinding

_MOST = 0.85


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """The share of the largest class, unless the loss weighs the classes or a sampler draws them."""
    shares = classes(history)
    looked = [iteration for iteration in history.iterations if iteration.target]
    if len(shares) < 2 or len(looked) < 5 or not is_classifier(history):
        return
    most = max(shares, key=lambda label: shares[label])
    expected = max(_MOST, 1 / len(shares))
    many = len(shares) > 2 and shares[most] > 0.7 and shares[most] * len(shares) > 3
    if shares[most] < expected and not many:
        return
    if any(loss.get("weight") for loss in history.losses) or any(
        loader["sampler"] == "WeightedRandomSampler" for loader in history.loaders
    ):
        return
    # Rare classes are a fault where they are not learned, or where evaluations have more of them.
    hurts = is_harmed(history) or evaluations_are_worse(history)
    # Where labels are pixels or words most of them are background; a loss of one's own may know that.
    dense = any(len(it.target["shape"]) > 1 and it.target["shape"][-1] > 1 for it in looked)
    yield TrainingFinding(
        "classes_unbalanced",
        0,
        f"{percent(shares[most])} of the labels are class {most}: always predicting it has the same accuracy.",
        place=classes_place(history),
        confidence=0.8 if hurts and not dense else 0.4,
        fix="Weight the classes in the loss (weight=, pos_weight=), sample rare ones more often "
        "(WeightedRandomSampler), and evaluate with balanced accuracy or F1.",
        evidence={f"share of class {label}": share for label, share in list(shares.items())[:8]},
    )
