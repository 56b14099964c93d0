"""Layers with weights follow one another with nothing in between: together they are one linear layer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from epochzero.run.watch.faults._signals import course, does_well
from epochzero.run.watch.history import Iteration, ModelLayer, TrainingHistory
from epochzero.run.watch.lines.layers import call_place
from epochzero.run.watch.model import TrainingFinding

_LINEAR = ("Linear", "Conv1d", "Conv2d", "Conv3d", "Dense", "Conv1D", "Conv2D", "Conv3D")
_THROUGH = (
    "Dropout",
    "Identity",
    "Flatten",
    "BatchNorm",
    "LayerNorm",
    "AvgPool",
    "AdaptiveAvgPool",
    "AveragePooling",
    "GlobalAveragePooling",
    "Reshape",
    "SpatialDropout",
    "ZeroPadding",
)


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """A layer whose input is another one's output, with what is linear between them at most."""
    seen = next((iteration for iteration in history.iterations if iteration.layers), None)
    if seen is None:
        return
    kinds = dict(history.order)
    pairs = []
    for path, kind in history.order:
        source = _source(seen, path, kinds)
        two = kind in _LINEAR and source and kinds.get(source) in _LINEAR
        # A narrow layer between two is an intended factorization.
        if two and not _is_narrow(history, source, path):
            pairs.append((source, path))
    hidden = [path for path, kind in history.order if kind in _LINEAR]
    found = course(history)
    if not pairs or found is None or not found.finite or does_well(history):
        return
    all_linear = len(pairs) >= len(hidden) - 1
    source, path = pairs[0]
    layer = history.layer(source)
    yield TrainingFinding(
        "activation_missing",
        0,
        f"{path} takes the output of {source}, with no activation between: "
        + ("the whole model is linear." if all_linear else "together they are one linear layer."),
        layer=source,
        place=call_place(layer),
        confidence=0.78 if all_linear else 0.62 if _are_siblings(source, path) else 0.4,
        fix=f"Put a ReLU between {source} and {path}.",
    )


def _are_siblings(first: str, second: str) -> bool:
    """Whether one module holds both: blocks that begin with an activation lie in modules of their own."""
    return first.rpartition(".")[0] == second.rpartition(".")[0]


def _source(seen: Iteration, path: str, kinds: Mapping[str, str]) -> str:
    """The layer whose output a layer takes, through what does not bend it."""
    source = str(seen.layers.get(path, {}).get("source", ""))
    for _ in range(8):
        if not source or not kinds.get(source, "").startswith(_THROUGH):
            break
        source = str(seen.layers.get(source, {}).get("source", ""))
    return source


def _is_narrow(history: TrainingHistory, source: str, path: str) -> bool:
    """Whether what goes from one to the other is less than what comes in and what goes out."""
    first, second = history.layer(source), history.layer(path)
    if first is None or second is None:
        return False
    before, between = _sizes(first)
    _, after = _sizes(second)
    return between < 0.5 * min(before, after)


def _sizes(layer: ModelLayer) -> tuple[int, int]:
    """How many features or channels go in and out."""
    of = layer.settings
    return (
        of.get("in_features") or of.get("in_channels") or 0,
        of.get("out_features") or of.get("out_channels") or 0,
    )
