"""A layer with parameters that is made and never called."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import does_well
from epochzero.run.watch.history import History
from epochzero.run.watch.model import Finding

__all__ = ["find"]


def find(history: History) -> Iterable[Finding]:
    """Leaves that no forward pass has called while their neighbors were, and that get no gradient."""
    if len(history.iterations) < 4:
        return
    used = {
        name
        for one in history.iterations
        for name, of in one.parameters.items()
        if of.get("gradient", {}).get("largest", 0.0) > 0
    }
    for layer in history.layers:
        names = [f"{layer.path}.{name}" for name in layer.parameters]
        if (
            layer.kind in ("ParameterList", "ParameterDict")
            or not layer.leaf
            or layer.called
            or not names
            or any(name in used for name in names)
        ):
            continue
        parent = history.layer(layer.path.rpartition(".")[0])
        # A whole part that is not called may be for another task.
        if parent is not None and not parent.called and parent.path:
            continue
        yield Finding(
            "layer_unused",
            0,
            f"{layer.path} ({layer.kind}) is made, and no forward pass calls it.",
            layer=layer.path,
            place=layer.place,
            confidence=0.56 if does_well(history) else 0.8,
            fix="Call it in forward, or take it out.",
            causes=("zero_gradient", "underfitting", "loss_plateau"),
        )
        return
