"""Too few units or layers for the task: even the training data are not fitted."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import course, does_well
from epochzero.run.watch.history import History
from epochzero.run.watch.lines import width_place
from epochzero.run.watch.model import Finding

__all__ = ["find"]

_NARROW = 3


def find(history: History) -> Iterable[Finding]:
    """A hidden layer far narrower than what is before and after it, in a model that does not fit."""
    found = course(history)
    if found is None or does_well(history) or not history.ended or not found.finite:
        return
    widths = []
    for path, _ in history.order:
        layer = history.layer(path)
        width = (layer.settings.get("out_features") or layer.settings.get("out_channels")
                 or layer.settings.get("hidden_size") or layer.settings.get("embedding_dim")) if layer else None  # fmt: skip
        if layer is not None and ":" not in path and isinstance(width, int):
            widths.append((width, layer))
    hidden = widths[:-1]
    if not hidden or found.slope > 0.1 or max(layer.model for layer in history.layers) > 0:
        return
    width, layer = min(hidden, key=lambda pair: pair[0])
    out = widths[-1][0]
    if width > _NARROW and width > 0.35 * out:
        return
    yield Finding(
        "capacity_too_small",
        0,
        f"{layer.path} has {width} units, the output {out}; the training loss stays at {found.end:.3g}.",
        layer=layer.path,
        place=width_place(layer),
        confidence=0.68,
        fix=f"Give it at least {max(16, 4 * out)} units.",
        evidence={"units": float(width)},
        causes=("underfitting", "loss_plateau", "slow_learning", "dead_units"),
    )
