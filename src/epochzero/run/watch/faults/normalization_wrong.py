"""A normalization whose statistics are of too few examples, never updated, or in the wrong place."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from epochzero.run.watch.faults._signals import (
    NORMALIZATIONS,
    goes_wrong,
    is_classifier,
    normalizations,
)
from epochzero.run.watch.history import Iteration, ModelLayer, TrainingHistory
from epochzero.run.watch.model import TrainingFinding

_FEW = 3


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Settings of batch normalization, the size of its batches, and evaluations that break with it."""
    layers = [
        layer
        for layer in normalizations(history)
        if "Batch" in layer.kind or "Instance" in layer.kind
    ]
    bad = goes_wrong(history)
    seen = next((iteration for iteration in history.iterations if iteration.layers), None)
    for layer in normalizations(history):
        text, certain = _doubt(layer)
        if text:
            yield _finding(layer, text, certain if bad else 0.4)
            return
    sizes = [
        iteration.inputs[0]["shape"][0]
        for iteration in history.iterations
        if iteration.inputs and iteration.inputs[0]["shape"]
    ]
    if layers and sizes and float(np.median(sizes)) <= _FEW:
        # Of images or signals each place is an example as well.
        certain = 0.86 if _is_flat(seen, layers[0]) else 0.55
        yield _finding(
            layers[0],
            f"Its statistics are computed from {int(np.median(sizes))} examples.",
            certain if bad else 0.45,
        )
        return
    order = [kind for _, kind in history.order]
    if len(order) > 2 and order[-1].startswith(NORMALIZATIONS) and bad and is_classifier(history):
        yield _finding(layers[-1] if layers else normalizations(history)[-1],
                       "It is the last layer: the loss receives only normalized values.", 0.72)  # fmt: skip


def _doubt(layer: ModelLayer) -> tuple[str, float]:
    momentum, eps = layer.settings.get("momentum"), layer.settings.get("eps")
    if isinstance(momentum, int | float) and not isinstance(momentum, bool):
        if momentum >= 0.8:
            return f"With a momentum of {momentum:g}, only the last batch counts.", 0.85
        if momentum <= 0.001:
            return (
                f"With a momentum of {momentum:g}, evaluations use statistics that never change.",
                0.88,
            )
    if isinstance(eps, int | float) and eps >= 0.05:
        return f"An epsilon of {eps:g} is as large as the variance.", 0.85
    if layer.settings.get("track_running_stats") is False and "Batch" in layer.kind:
        return "It has no running statistics: evaluations depend on their batch.", 0.75
    return "", 0.0


def _is_flat(seen: Iteration | None, layer: ModelLayer) -> bool:
    """Whether there is nothing but the examples to take statistics of."""
    shape = seen.layers.get(layer.path, {}).get("shape", ()) if seen else ()
    return len(shape) == 2


def _finding(layer: ModelLayer, text: str, confidence: float) -> TrainingFinding:
    return TrainingFinding(
        "normalization_wrong", 0, f"{layer.kind} {layer.path}: {text}", layer=layer.path,
        place=layer.place, confidence=confidence,
        fix="Use batches of at least 16, or GroupNorm or LayerNorm; use a momentum of 0.1 and an epsilon of 1e-5.",
    )  # fmt: skip
