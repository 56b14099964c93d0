"""Updates so large that the loss jumps, grows, or is soon no number."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import (
    ADAPTIVE,
    course,
    does_well,
    early_updates,
    first_bad,
    is_known_loss,
    relative_updates,
)
from epochzero.run.watch.history import History
from epochzero.run.watch.lines import place_of, setting_place
from epochzero.run.watch.model import Finding

__all__ = ["find"]

_LARGE = 0.1


def find(history: History) -> Iterable[Finding]:
    """A loss that goes wrong, with updates that are large beside the weights from the beginning."""
    found = course(history)
    updates = relative_updates(history)
    if found is None or not history.optimizers:
        return
    begun = early_updates(history)
    largest = max(begun.values(), default=0.0)
    usual = max(updates.values(), default=0.0)
    rate = max((max(one.rates) for one in history.iterations[:3] if one.rates), default=0.0)
    adaptive = history.optimizers[0]["class"] in ADAPTIVE
    blown = not found.finite or found.worst > 3 * abs(found.first) + 1
    stuck = (
        is_known_loss(history) and min(found.fall, 1 - found.end / max(found.first, 1e-12)) < 0.1
    )
    rough = found.roughness > 0.25 and (found.fall < 0.6 or not is_known_loss(history))
    if does_well(history) or not (blown or stuck or rough):
        return
    certain = 0.0
    if adaptive and rate >= 0.05:
        certain = 0.9
    elif adaptive and rate >= 0.01 and largest > _LARGE and is_known_loss(history):
        certain = 0.72
    elif not adaptive and largest > _LARGE and (blown or stuck or usual > _LARGE):
        certain = 0.85 if rate >= 0.5 or largest > 1 else 0.7
    elif usual > _LARGE:
        certain = 0.6
    if not certain:
        return
    made = place_of(history.optimizers[0])
    trouble = (
        "is no number"
        if not found.finite
        else "grew"
        if blown
        else "does not fall"
        if stuck
        else "jumps"
    )
    yield Finding(
        "learning_rate_too_high",
        first_bad(history),
        f"With a learning rate of {rate:g} a step changes weights by up to {largest:.0%} of their "
        f"size, and the loss {trouble}.",
        place=setting_place(made, "lr", 1),
        confidence=certain,
        fix=f"Try {_better(rate, largest):.1g}; with a warm-up over the first few hundred steps.",
        evidence={"learning rate": rate, "update beside weight": largest},
        series="loss",
        causes=(
            "loss_rising", "loss_oscillating", "loss_not_a_number", "loss_not_falling",
            "loss_plateau", "updates_too_large", "exploding_gradient", "dead_units",
            "saturated_units", "constant_output", "activation_not_finite", "zero_gradient",
            "underfitting", "vanishing_gradient",
        ),
    )  # fmt: skip


def _better(rate: float, largest: float) -> float:
    """A rate at which a step changes weights by about a hundredth."""
    return rate * min(0.1, 0.01 / max(largest, 1e-12))
