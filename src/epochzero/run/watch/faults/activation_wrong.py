"""An activation that does not fit its place: saturated, dead, or stacked until no gradient is left."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import (
    course,
    does_well,
    feeding,
    gradient_ratio,
    is_known_loss,
    saturation,
)
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.contracts import bootstrapped_place
from epochzero.run.watch.lines.layers import activation_place
from epochzero.run.watch.model import TrainingFinding

_SATURATING = ("Sigmoid", "sigmoid", "Tanh", "tanh", "Hardtanh", "hardtanh", "Softsign", "Softmax",
               "softmax", "Hardsigmoid", "LogSigmoid")  # fmt: skip


_SHRUNK = 0.15
"""Gradient of the first layer compared with the last: two layers of tanh whose gradient arrives are a usual model."""


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Saturating activations within a model whose gradients vanish toward its first layers."""
    if len(history.iterations) < 5:
        return
    flat = _without_gradient(history)
    if flat:
        layer = history.layer(flat)
        yield TrainingFinding(
            "activation_wrong", 0,
            f"{flat} passes no gradient: layers before it get a gradient of exactly zero, layers after it are "
"trained.",
            layer=flat.partition(":")[0], place=activation_place(layer, flat), confidence=0.88,
            fix="Use an activation with a nonzero gradient: ReLU, GELU, or a soft threshold.",
        )  # fmt: skip
        return
    used = feeding(history)
    # What an attention or a mixture does with its softmax is no layer: weights of zero are what a mask makes.
    inside = [
        (path, kind)
        for path, kind in history.order[:-1]
        if kind in _SATURATING and (kind.lower() != "softmax" or path in used)
    ]
    softmax = [path for path, kind in inside if kind.lower() == "softmax"]
    found = course(history)
    if found is None or not inside or (not softmax and (found.fall > 0.7 or does_well(history))):
        return
    shrink = gradient_ratio(history)
    full = {path: saturation(history, path) for path, _ in inside}
    worst = max(full, key=lambda path: full[path])
    vanishing = shrink is not None and shrink < 0.02
    if softmax:
        path, certain = softmax[0], 0.55 if does_well(history) else 0.7
        text = f"{path} is a softmax in the middle of the model: its outputs add up to 1."
    elif len(inside) >= 3 and vanishing:
        path, certain = inside[0][0], 0.8
        text = (
            f"{len(inside)} saturating activations ({inside[0][1]}) follow one another, and the gradient of "
            f"the first layer is {shrink:.1e} of the last one's."
        )
    elif full[worst] > 0.6:
        path, certain = worst, 0.62
        text = (
            f"{percent(full[worst])} of the outputs of {worst} are in the saturated range of "
            f"{dict(inside)[worst]}."
        )
    elif (
        len(inside) >= 2
        and found.fall < 0.3
        # A target that is computed by the model itself moves, and with it the loss.
        and bootstrapped_place(history) is None
        and is_known_loss(history)
        and shrink is not None
        and shrink < _SHRUNK
    ):
        path, certain = inside[0][0], 0.55
        text = f"{len(inside)} layers end in {inside[0][1]}, and the loss hardly decreases."
    else:
        return
    layer = history.layer(path)
    yield TrainingFinding(
        "activation_wrong", 0, text, layer=path.partition(":")[0],
        place=activation_place(layer, path), confidence=certain,
        fix="Use ReLU or GELU between layers.",
        evidence={"saturated": full[worst]},
    )  # fmt: skip


def _without_gradient(history: TrainingHistory) -> str:
    """A function between a layer whose gradient is always zero and one that is trained; empty for none."""
    first = next((iteration for iteration in history.iterations if iteration.layers), None)
    if first is None:
        return ""
    kinds = dict(history.order)
    for path, kind in history.order:
        before = str(first.layers.get(path, {}).get("source", ""))
        layer = history.layer(path)
        plain = layer is None or not layer.parameters
        # Units of a ReLU may all be dead, for other reasons.
        if (
            not plain
            or not before
            or "ReLU" in kind
            or kind == "relu"
            or path not in feeding(history)
        ):
            continue
        after = [to for to in kinds if first.layers.get(to, {}).get("source") == path]
        if (
            not _largest(history, before)
            and _is_trainable(history, before)
            and any(_largest(history, to) for to in after)
        ):
            return path
    return ""


def _largest(history: TrainingHistory, path: str) -> float | None:
    """The largest gradient that the weights of a layer ever had; None where none was seen."""
    for parameter in history.parameters:
        if parameter.layer == path and len(parameter.shape) > 1:
            series = history.parameter_series(parameter.name, "gradient", "largest")
            return float(series[:, 1].max()) if len(series) >= 5 else None
    return None


def _is_trainable(history: TrainingHistory, path: str) -> bool:
    """Whether an optimizer holds the weights of a layer; of one with scales only `_largest` sees nothing."""
    return any(
        param.layer == path and len(param.shape) > 1 and param.trainable and param.held
        for param in history.parameters
    )
