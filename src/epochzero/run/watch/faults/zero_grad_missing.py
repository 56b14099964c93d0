"""Gradients are not cleared: what is left of the step before is there when the next backward begins."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.training import backward_place
from epochzero.run.watch.model import TrainingFinding

_LOOKS = 3


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """After a step, gradients should be gone before one of the backward passes of an iteration."""
    if not any(iteration.stepped for iteration in history.iterations):
        return
    looked = [it for it in history.iterations if it.number > 0 and it.before]
    for number in sorted({number for iteration in looked for number in iteration.before}):
        left = [it for it in looked if it.before.get(number, {}).get("left", 0.0) != 0]
        if len(left) < _LOOKS or len(left) < 0.9 * len(looked):
            continue
        first = left[0]
        name = first.before[number]["name"]
        yield TrainingFinding(
            "zero_grad_missing",
            first.number,
            f"When the backward pass of iteration {first.number} starts, {name} still has the gradient of the "
"previous step; each step adds to it.",
            place=backward_place(history),
            confidence=0.97,
            fix="Call optimizer.zero_grad() before each backward pass.",
            evidence={"gradient left": first.before[number]["left"]},
        )  # fmt: skip
        return
