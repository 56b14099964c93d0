"""A schedule that ends learning too early, or makes the rate too large."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from epochzero.run.watch.faults._signals import course, does_well, first_bad, looked
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.settings import schedule_place
from epochzero.run.watch.model import TrainingFinding

_EARLY = 0.6


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """A rate that is as good as zero while much of the training is to come, or grows without end."""
    # What came before is another phase, such as a search for the rate.
    first = history.loss[0, 0] if len(history.loss) else 0
    rates = np.array([(it.number, max(it.rates)) for it in looked(history, int(first)) if it.rates])
    found = course(history)
    if found is None or len(rates) < 8 or not history.schedulers:
        return
    planned = history.planned or history.count
    place = schedule_place(history)
    peak = int(np.argmax(rates[:, 1]))
    after = rates[peak:]
    gone = after[after[:, 1] < 0.01 * rates[peak, 1]]
    kind = history.schedulers[-1]["class"]
    stays = len(gone) > 0.5 * max(1, int((after[:, 0] >= gone[0, 0]).sum())) if len(gone) else False
    # A rate that follows the loss is gone because the loss stands still.
    if stays and gone[0, 0] < _EARLY * planned and not does_well(history) and "Plateau" not in kind:
        yield TrainingFinding(
            "schedule_wrong",
            int(gone[0, 0]),
            f"{kind} changed the learning rate from {rates[peak, 1]:.2g} to {gone[0, 1]:.1g} by iteration "
            f"{int(gone[0, 0])} of {planned}; the loss stays at {found.end:.3g}.",
            place=place,
            confidence=0.9,
            fix="Step the scheduler once per epoch instead of once per batch, or adapt its parameters to the length "
            "of the training.",
            evidence={"highest": rates[peak, 1], "lowest": float(after[:, 1].min())},
            series="rate",
        )
    grown = rates[-1, 1] > 10 * rates[0, 1] and rates[-1, 1] >= rates[peak, 1] * 0.99
    if grown and (not found.finite or found.end > 1.5 * found.best + 1e-9):
        yield TrainingFinding(
            "schedule_wrong",
            first_bad(history),
            f"{kind} raises the learning rate from {rates[0, 1]:.2g} to {rates[-1, 1]:.2g}, and the loss increases.",
            place=place,
            confidence=0.9,
            fix="Lower the factor (it is above 1) or the peak of the cycle.",
            evidence={"first": rates[0, 1], "last": rates[-1, 1]},
            series="rate",
        )  # fmt: skip
