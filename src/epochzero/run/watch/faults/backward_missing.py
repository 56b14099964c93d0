"""The optimizer steps without gradients of this iteration."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.training import step_place
from epochzero.run.watch.model import TrainingFinding

_LOOKS = 3


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Steps without a backward pass before them."""
    looked = [iteration for iteration in history.iterations if iteration.stepped]
    without = [iteration for iteration in looked if not iteration.backwards]
    if len(without) < _LOOKS or len(without) < 0.9 * len(looked) or _has_gradients(history):
        return
    yield TrainingFinding(
        "backward_missing",
        without[0].number,
        "The optimizer steps, but no backward pass has computed gradients.",
        place=step_place(history),
        confidence=0.95,
        fix="Call loss.backward() before optimizer.step().",
    )


def _has_gradients(history: TrainingHistory) -> bool:
    """Whether gradients come from where no call is seen, as of a compiled step or of `torch.func`."""
    return any(
        of.get("gradient", {}).get("largest", 0.0) > 0
        for iteration in history.iterations
        for of in iteration.parameters.values()
    )
