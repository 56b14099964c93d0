"""An activation that does not fit its place: saturated, dead, or stacked until no gradient is left."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import course, does_well, gradient_ratio, saturation
from epochzero.run.watch.history import History
from epochzero.run.watch.lines import activation_place
from epochzero.run.watch.model import Finding

__all__ = ["find"]

_SATURATING = ("Sigmoid", "sigmoid", "Tanh", "tanh", "Hardtanh", "hardtanh", "Softsign", "Softmax",
               "softmax", "Hardsigmoid", "LogSigmoid")  # fmt: skip


def find(history: History) -> Iterable[Finding]:
    """Saturating activations within a model whose gradients vanish toward its first layers."""
    if len(history.iterations) < 5:
        return
    inside = [(path, kind) for path, kind in history.order[:-1] if kind in _SATURATING]
    softmax = [path for path, kind in inside if kind.lower() == "softmax"]
    found = course(history)
    first = next((one for one in history.iterations if one.layers), None)
    sources = {layer.get("source") for layer in first.layers.values()} if first else set()
    # What an attention or a mixture does with its softmax is no layer.
    softmax = [path for path in softmax if path in sources]
    if found is None or not inside or (not softmax and (found.fall > 0.7 or does_well(history))):
        return
    shrink = gradient_ratio(history)
    full = {path: saturation(history, path) for path, _ in inside}
    worst = max(full, key=lambda path: full[path])
    vanishing = shrink is not None and shrink < 0.02
    if softmax:
        path, certain = softmax[0], 0.7
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
            f"{full[worst]:.0%} of what {worst} gives is at the flat ends of {dict(inside)[worst]}."
        )
    elif len(inside) >= 2 and found.fall < 0.3:
        path, certain = inside[0][0], 0.55
        text = f"{len(inside)} layers end in {inside[0][1]}, and the loss hardly falls."
    else:
        return
    layer = history.layer(path)
    yield Finding(
        "activation_wrong", 0, text, layer=path.partition(":")[0],
        place=activation_place(layer, path), confidence=certain,
        fix="Use ReLU or GELU between layers.",
        evidence={"saturated": full[worst]},
        causes=("vanishing_gradient", "saturated_units", "slow_learning", "loss_not_falling",
                "loss_plateau", "updates_too_small", "weights_unchanged", "constant_output",
                "underfitting", "zero_gradient"),
    )  # fmt: skip
