"""Updates so large that the loss jumps, grows, or is soon no number."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from epochzero.run.watch.faults._signals import (
    ADAPTIVE,
    LossCourse,
    chance_loss,
    course,
    does_well,
    early_updates,
    first_bad,
    is_known_loss,
    looked,
    peak_updates,
    relative_updates,
)
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import Record, TrainingHistory
from epochzero.run.watch.lines.settings import place_of, setting_place
from epochzero.run.watch.model import TrainingFinding

_LARGE = 0.1
_SOON = 60
"""Iterations in which a loss may stand still or jump."""
_FAR_TOO_HIGH, _TOO_HIGH = 50, 10
"""Times the usual rate of an optimizer whose steps have a size of their own."""
_USUAL_RATES = {"Adadelta": 1.0}
"""Where it is not the 1e-3 of Adam: Adadelta finds the size of its steps itself, its rate only scales it."""


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """A loss that goes wrong, with a rate or updates that are large compared with the weights."""
    found = course(history)
    if found is None or not history.optimizers or does_well(history):
        return
    trouble = _trouble(history, found)
    rate, number = _highest(history)
    record = history.optimizers[min(number, len(history.optimizers) - 1)]
    largest = max(early_updates(history).values(), default=0.0)
    certain = _certainty(history, found, record["class"], rate, largest)
    if not trouble or not certain:
        return
    largest = max(largest, max(peak_updates(history).values(), default=0.0))
    yield TrainingFinding(
        "learning_rate_too_high",
        first_bad(history),
        f"With a learning rate of {rate:g} {_effect(largest)}the loss {trouble}.",
        place=setting_place(place_of(record), "lr", 1),
        confidence=certain,
        fix=f"Try {_better(record, rate, largest):.1g}, with a warm-up over the first few hundred steps.",
        evidence={"learning rate": rate, "ratio of update to weight": largest},
        series="loss",
    )  # fmt: skip


def _trouble(history: TrainingHistory, found: LossCourse) -> str:
    """What is wrong with the loss; empty where nothing is."""
    known = is_known_loss(history)
    if _is_lost(history):
        return "is NaN"
    if _has_grown(found):
        return "increased"
    if found.end > found.best + 0.5 * max(chance_loss(history) or found.first, found.best):
        return "has increased again"
    # A rate that is seen to be too high by what the loss does not do needs time to show it.
    if not history.ended and found.count < _SOON:
        return ""
    if known and min(found.fall, 1 - found.end / max(found.first, 1e-12)) < 0.1:
        return "does not decrease"
    if found.roughness > 0.25 and (found.fall < 0.6 or not known):
        return "jumps"
    return ""


def _effect(largest: float) -> str:
    """What a step does to the weights, where that was seen."""
    return (
        f"a step changes weights by up to {percent(largest)} of their size, and "
        if largest > 0
        else ""
    )


def _is_lost(history: TrainingHistory) -> bool:
    """Whether the loss is no number to the end: after a step that ruins the weights it never is one again."""
    return not np.isfinite(history.loss[-1, 1])


def _has_grown(found: LossCourse) -> bool:
    """Whether the smoothed loss was far above its start, by more than its batches differ."""
    begin = max(abs(found.first), abs(found.start))
    return found.worst > 3 * begin + 1 + 3 * found.noise


def _certainty(
    history: TrainingHistory, found: LossCourse, kind: str, rate: float, largest: float
) -> float:
    adaptive, usual_rate = kind in ADAPTIVE, _USUAL_RATES.get(kind, 1e-3)
    usual = max(relative_updates(history).values(), default=0.0)
    peak = max(peak_updates(history).values(), default=0.0)
    blown = _is_lost(history) or _has_grown(found) or found.fall < 0.1
    if adaptive and rate >= _FAR_TOO_HIGH * usual_rate:
        return 0.9
    if (
        adaptive
        and rate >= _TOO_HIGH * usual_rate
        and max(largest, usual) > _LARGE
        and is_known_loss(history)
    ):
        return 0.72
    if not adaptive and largest > _LARGE and (blown or usual > _LARGE):
        return 0.85 if rate >= 0.5 or largest > 1 else 0.7
    if not adaptive and rate >= 1 and blown:
        return 0.8
    if peak > 3 * _LARGE and found.end > 2 * found.best:
        return 0.66
    return 0.6 if usual > _LARGE else 0.0


def _highest(history: TrainingHistory) -> tuple[float, int]:
    """The highest rate, and the number of the optimizer that has it as far as records show."""
    # What came before is another phase, such as a search for the rate.
    first = int(history.loss[0, 0]) if len(history.loss) else 0
    rates = [iteration.rates for iteration in looked(history, first) if iteration.rates]
    if not rates:
        return 0.0, 0
    highest = max(max(of) for of in rates)
    for number, record in enumerate(history.optimizers):
        groups = record.get("groups", ())
        if any(np.isclose(float(group.get("lr") or 0), highest, rtol=0.5) for group in groups):
            return highest, number
    return highest, 0


def _better(record: Record, rate: float, largest: float) -> float:
    """A rate at which a step changes weights by about a hundredth; of Adam and the like the usual one."""
    lower = rate * min(0.1, 0.01 / max(largest, 1e-12))
    return min(lower, 1e-3) if record["class"] in ADAPTIVE else lower
