"""A penalty on the weights outweighs what the examples teach."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import course, does_well, weight_decay, weights
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines import decay_place, penalty_place
from epochzero.run.watch.model import TrainingFinding

_SHRUNK = 0.6


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Weights that shrink together while the loss stays, or a weight decay that must do so."""
    found = course(history)
    if found is None or does_well(history) or len(history.iterations) < 8:
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
    if not left or len(shrunk) < 0.6 * len(left) or max(left.values()) > 1.2:
        return
    yield TrainingFinding(
        "regularization_too_strong",
        0,
        f"Weights have shrunk to {percent(sum(left.values()) / len(left))} of their size, with a weight decay "
        f"of {decay:g}, and the loss stays at {found.end:.3g}.",
        place=decay_place(history) if decay else penalty_place(history),
        confidence=0.88 if decay >= 1e-3 else 0.72 if penalty_place(history) else 0.45,
        fix=f"Try a weight decay of {min(1e-4, decay / 100) or 1e-4:.1g}.",
        evidence={"weight decay": decay},
    )  # fmt: skip
