"""Too few units or layers for the task: even the training data are not fitted."""

from __future__ import annotations

import math
from collections.abc import Iterable

from epochzero.run.watch.faults._signals import course, does_well, feeding, is_classifier
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.settings import width_place
from epochzero.run.watch.model import TrainingFinding

_NARROW = 3
_HEADS = ("Linear", "Conv1d", "Conv2d", "Conv3d", "Dense", "Conv1D", "Conv2D", "Conv3D")


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """A hidden layer far narrower than what is before and after it, in a model that does not fit."""
    found = course(history)
    if found is None or does_well(history) or not history.ended or not found.finite:
        return
    widths, used = [], feeding(history)
    for path, _ in history.order:
        layer = history.layer(path)
        width = (layer.settings.get("out_features") or layer.settings.get("out_channels")
                 or layer.settings.get("hidden_size") or layer.settings.get("embedding_dim")) if layer else None  # fmt: skip
        if layer is not None and ":" not in path and isinstance(width, int):
            widths.append((width, layer))
    hidden = [
        (width, layer)
        for width, layer in widths[:-1]
        if layer.path in used or layer.kind not in _HEADS
    ]
    if (
        not hidden
        or _repeats(history)
        or found.slope > 0.1
        or max(layer.model for layer in history.layers) > 0
    ):
        return
    width, layer = min(hidden, key=lambda pair: pair[0])
    out = widths[-1][0]
    # Separating this many classes takes at least as many units as the digits of their numbers.
    if width > max(_NARROW, math.log2(out) if is_classifier(history) else 0):
        return
    yield TrainingFinding(
        "capacity_too_small",
        0,
        f"{layer.path} has {width} units, the output {out}; the training loss stays at {found.end:.3g}.",
        layer=layer.path,
        place=width_place(layer),
        confidence=0.68,
        fix=f"Use at least {max(16, 4 * out)} units.",
        evidence={"units": float(width)},
    )


def _repeats(history: TrainingHistory) -> bool:
    """Whether the model is to give its input again: a narrow layer is what it is made for."""
    return any(
        iteration.inputs
        and iteration.target
        and "float" in iteration.inputs[0]["dtype"]
        and iteration.inputs[0]["shape"] == iteration.target.get("shape")
        for iteration in history.iterations
    )
