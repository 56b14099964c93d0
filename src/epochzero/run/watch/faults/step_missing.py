"""Gradients are computed, and no optimizer applies them."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.training import backward_place
from epochzero.run.watch.model import TrainingFinding

_LOOKS = 3


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Backward passes without a step, though there is an optimizer, and weights that stay."""
    looked = [iteration for iteration in history.iterations if iteration.backwards]
    if len(looked) < _LOOKS or not history.optimizers or any(it.stepped for it in looked):
        return
    updated = any(
        of.get("update", {}).get("rms", 0.0) > 0
        for iteration in history.iterations
        for of in iteration.parameters.values()
    )
    if updated:
        return
    yield TrainingFinding(
        "step_missing",
        0,
        f"{history.count} iterations of backward passes, but no optimizer has stepped.",
        place=backward_place(history),
        confidence=0.95,
        fix="Call optimizer.step() after the backward pass.",
    )  # fmt: skip
