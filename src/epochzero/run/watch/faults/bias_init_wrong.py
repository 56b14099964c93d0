"""A bias that begins so far off that units cannot answer to their input."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import (
    NORMALIZATIONS,
    chance_loss,
    course,
    does_well,
    feeding,
)
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.layers import initialization_place
from epochzero.run.watch.model import TrainingFinding

_FAR = 0.9


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Biases that begin far from zero, one for all units."""
    if does_well(history) or course(history) is None:
        return
    used = feeding(history)
    kinds = {layer.path: layer.kind for layer in history.layers}
    for parameter in history.parameters:
        kind = kinds.get(parameter.layer, "")
        if not parameter.name.endswith("bias") or len(parameter.shape) != 1:
            continue
        mean, spread = parameter.values.get("mean", 0.0), parameter.values.get("std", 0.0)
        # At the end of a model, or of a gate, it may be the right initial value.
        if parameter.layer not in used and not _begins_badly(history):
            continue
        # Scaled numbers lie within a few units of zero.
        if abs(mean) < (2.5 if kind.startswith(NORMALIZATIONS) else _FAR) or spread > 0.3 * abs(
            mean
        ):
            continue
        yield TrainingFinding(
            "bias_init_wrong",
            0,
            f"{parameter.name} is initialized to {mean:.3g} for all {parameter.shape[0]} units.",
            layer=parameter.layer,
            place=initialization_place(history, parameter),
            confidence=0.91 if abs(mean) > 3 else 0.78,
            fix="Initialize biases to zero.",
            evidence={"mean": mean},
        )  # fmt: skip
        return


def _begins_badly(history: TrainingHistory) -> bool:
    found, chance = course(history), chance_loss(history)
    return bool(found and chance and found.first > 2 * chance)
