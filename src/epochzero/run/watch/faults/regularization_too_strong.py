"""A penalty on the weights outweighs what the examples teach."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from epochzero.run.watch.faults._signals import course, does_well, weight_decay, weights
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.loss import penalty_place
from epochzero.run.watch.lines.settings import decay_place
from epochzero.run.watch.model import TrainingFinding

_SHRUNK = 0.6
_LARGE = 0.01
"""A decay that is added to gradients is 1e-5 to 5e-3 in published recipes."""


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Weights that shrink together while the loss stays, or a weight decay that must do so."""
    found = course(history)
    if found is None or len(history.iterations) < 8:
        return
    left = {}
    # In Keras a penalty is of the kernels of some layers, and says nothing of other weights.
    penalized = {
        f"{layer.path}.kernel" for layer in history.layers if layer.settings.get("weight_decay")
    }
    for weight in weights(history):
        if penalized and weight.name not in penalized:
            continue
        series = history.parameter_series(weight.name, "weight", "rms")
        if len(series) > 4 and series[0, 1] > 0:
            left[weight.name] = float(series[-1, 1] / series[0, 1])
    decay = weight_decay(history)
    shrunk = [ratio for ratio in left.values() if ratio < _SHRUNK]
    if not left or len(shrunk) < 0.6 * len(left):
        return
    outweighed = decay >= _LARGE and _outweighs(history, decay)
    if not outweighed and (does_well(history) or max(left.values()) > 1.2):
        return
    how = "pulls as strongly as the loss" if outweighed else f"leaves the loss at {found.end:.3g}"
    yield TrainingFinding(
        "regularization_too_strong",
        0,
        f"Most weights have shrunk, all to {percent(sum(left.values()) / len(left))} of their size on average: a weight decay of "
        f"{decay:g} {how}.",
        place=decay_place(history) if decay else penalty_place(history),
        confidence=0.88 if decay >= 1e-3 else 0.72 if penalty_place(history) else 0.45,
        fix=f"Try a weight decay of {min(1e-4, decay / 100) or 1e-4:.1g}.",
        evidence={"weight decay": decay},
    )  # fmt: skip


def _outweighs(history: TrainingHistory, decay: float) -> bool:
    """Whether an optimizer adds a decay to gradients that is as large as these for most weights."""
    groups = [group for optimizer in history.optimizers for group in optimizer["groups"]]
    if any(optimizer["class"] == "AdamW" for optimizer in history.optimizers) or any(
        group.get("decoupled_weight_decay") for group in groups
    ):
        return False
    ratios = []
    for parameter in weights(history):
        gradients, sizes = (
            history.parameter_series(parameter.name, what, "rms")[-10:, 1]
            for what in ("gradient", "weight")
        )
        if len(gradients) and float(np.median(gradients)) > 0:
            ratios.append(decay * float(np.median(sizes)) / float(np.median(gradients)))
    return bool(ratios) and float(np.median(ratios)) > 0.5
