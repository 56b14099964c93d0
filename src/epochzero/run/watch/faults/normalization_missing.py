"""A deep network whose signals shrink or grow from layer to layer, without a layer that scales them."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import course, does_well, gradient_ratio, normalizations
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import TrainingFinding

_DEEP = 6
_SOON = 50


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """The spread of outputs, and of gradients, from the first layers to the last."""
    found = course(history)
    deep = [path for path, kind in history.order if kind.startswith(("Linear", "Dense", "Conv"))]
    if found is None or does_well(history) or len(deep) < _DEEP or normalizations(history):
        return
    # A deep network may begin slowly.
    if found.finite and (found.count < _SOON or found.fall > 0.1):
        return
    first = next((iteration for iteration in history.iterations if iteration.layers), None)
    if first is None:
        return
    sizes = [first.layers[path]["std"] for path in deep if path in first.layers]
    spreads = [first.layers[path]["spread"] for path in deep if path in first.layers]
    if len(sizes) < _DEEP:
        return
    ratio = sizes[-2] / max(sizes[0], 1e-12)
    flat = spreads[-1] < 0.05
    shrink = gradient_ratio(history)
    if (
        0.02 < ratio < 50
        and not flat
        and not (shrink is not None and (shrink < 0.02 or shrink > 50))
    ):
        return
    # Any of them may be the first without: the middle one is of the part that is repeated.
    middle = deep[len(deep) // 2]
    layer = history.layer(middle)
    yield TrainingFinding(
        "normalization_missing",
        0,
        f"Over {len(deep)} layers without normalization the standard deviation of activations changes from "
f"{sizes[0]:.2g} to {sizes[-2]:.2g}.",
        layer=middle,
        place=layer.place if layer else None,
        confidence=0.66,
        fix="Put BatchNorm or LayerNorm after each layer, or add residual connections.",
        evidence={"first spread": sizes[0], "last spread": sizes[-2]},
    )  # fmt: skip
