"""The model gives the same for all examples."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import TrainingFinding

_LOOKS = 5


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """How much what the loss is given differs between the examples of a batch."""
    seen = [one for one in history.iterations if one.output.get("between_examples") is not None]
    last = seen[-_LOOKS:]
    if len(last) < _LOOKS or any(one.output["between_examples"] > 1e-4 for one in last):
        return
    yield TrainingFinding(
        "constant_output",
        last[0].number,
        f"The model returns {last[-1].output['mean']:.3g} for all examples of a batch.",
        confidence=0.75,
    )
