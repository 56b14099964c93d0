"""The evaluation loss goes another way than the training loss."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import course, evaluations
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import TrainingFinding

_WORSE = 1.5


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """An evaluation loss that has grown since its best, while the training loss has fallen."""
    found = course(history)
    losses = [(one.iteration, one.loss) for one in evaluations(history) if one.loss is not None]
    if found is None or len(losses) < 3 or found.fall < 0.1:
        return
    since, best = min(losses, key=lambda pair: pair[1])
    if losses[-1][1] > _WORSE * best and since < losses[-1][0]:
        yield TrainingFinding(
            "validation_diverging",
            since,
            f"The evaluation loss was {best:.4g} at iteration {since} and is {losses[-1][1]:.4g}; the training "
            f"loss has decreased by {percent(found.fall)}.",
            confidence=0.7,
            series="loss",
        )
