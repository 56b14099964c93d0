"""The model does not do well on its own training data."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import classes, train_accuracy
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import TrainingFinding

_LEAST = 60


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """The accuracy on training data, beside always saying the most frequent class."""
    accuracy, shares = train_accuracy(history), classes(history)
    if accuracy is None or not shares or history.count < _LEAST:
        return
    most = max(shares.values())
    if accuracy < most + 0.25 * (1 - most):
        yield TrainingFinding(
            "underfitting",
            0,
            f"{percent(accuracy)} of the training examples are classified correctly; always predicting the most "
            f"frequent class would reach {percent(most)}.",
            confidence=0.65,
        )
