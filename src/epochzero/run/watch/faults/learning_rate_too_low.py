"""Updates so small that nothing is learned in the time given."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from epochzero.run.watch.faults._signals import (
    ADAPTIVE,
    chance_loss,
    course,
    does_well,
    is_known_loss,
    moved,
)
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.settings import place_of, setting_place
from epochzero.run.watch.model import TrainingFinding

_SHORT = 0.35
_LEAST = 20
_USUAL = 1000


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Weights that go a short way in all, with a loss that still falls evenly, or not at all."""
    found = course(history)
    ways = moved(history)
    if found is None or not ways or history.count < _LEAST or not history.optimizers:
        return
    far = max(ways.values())
    # How far they would go: few trainings have fewer steps than that.
    steps = history.count if history.ended else max(history.planned or _USUAL, history.count)
    far *= steps / history.count
    rates = [max(iteration.rates) for iteration in history.iterations if iteration.rates]
    if far > _SHORT or does_well(history) or not rates or not found.finite:
        return
    # Where gradients are not seen, as of Keras on TensorFlow, the distance that weights moved shows them.
    gradients = [
        parameter["gradient"]["rms"]
        for looked in history.iterations[:5]
        for parameter in looked.parameters.values()
        if "gradient" in parameter
    ]
    if max(gradients, default=far) <= 1e-9:
        return
    if found.fall > 0.5 and is_known_loss(history):
        return
    # At a usual rate it is the gradients that are too small.
    adaptive = history.optimizers[0]["class"] in ADAPTIVE
    if max(rates) >= (3e-4 if adaptive else 8e-3):
        return
    # A rate that was high once has been taken away by its schedule.
    if max(rates) > 20 * max(float(np.median(rates)), 1e-30):
        return
    # What was trained before needs to move no further.
    chance = chance_loss(history)
    if chance is not None and found.first < 0.5 * chance:
        return
    rate = max(rates)
    yield TrainingFinding(
        "learning_rate_too_low",
        0,
        f"With a learning rate of {rate:g} all {history.count} steps together changed no weight by more than "
f"{percent(far)} of its size; the loss decreased by {percent(max(0.0, found.fall))}.",
        place=setting_place(place_of(history.optimizers[0]), "lr", 1),
        confidence=0.88 if far < 0.1 else 0.7,
        fix=f"Try {rate * min(1000.0, 3 / max(far, 1e-9)) or 1e-3:.1g}.",
        evidence={"learning rate": rate, "ratio of total change to weight": far},
        series="loss",
    )  # fmt: skip
