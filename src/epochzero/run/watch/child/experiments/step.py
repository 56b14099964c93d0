"""Whether the step that was taken lowers the loss of the batch that it was taken for, and what steps of other sizes do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from epochzero.run.watch.child.experiments.dependence import RecordedStep
from epochzero.run.watch.child.experiments.worlds import World, compute

SIZES = (0.01, 0.1, 1.0, 10.0)
"""Of the step, relative to the one that was taken."""
MOST_BYTES = 64 << 20
"""Of the parameters: two copies are held for a moment."""


def parameters_before(subject: RecordedStep) -> Mapping[int, torch.Tensor]:
    """Copies of the parameters; none where they are too large."""
    own = {n: subject.tape.leaves[n] for n in subject.parameters}
    if sum(value.nbytes for value in own.values()) > MOST_BYTES:
        return {}
    return {n: value.detach().clone() for n, value in own.items() if value.is_floating_point()}


def facts(
    subject: RecordedStep, before: Mapping[int, torch.Tensor], until: float
) -> list[dict[str, Any]]:
    """The loss of the batch after steps of each of `SIZES` along the one that was taken.

    Args:
        subject: the recording, whose parameters have been changed by a step.
        before: the parameters as they were.
        until: time of this thread at which the experiment ends.

    Raises:
        UnfitError: the tape does not give the loss of the job, or it takes too long.
    """
    after = {n: subject.tape.leaves[n].detach() for n in before}
    worlds = [World(before, before, pinned=False)]
    for size in SIZES:
        moved = {n: value + size * (after[n] - value) for n, value in before.items()}
        worlds.append(World(moved, moved, pinned=False))
    retained = frozenset((subject.loss,))
    values = compute(subject.tape, worlds, lambda *_: None, retained, until)
    losses = [float(of[subject.loss].detach().float().sum()) for of in values if of]
    moved_any = any(not torch.equal(after[n], value) for n, value in before.items())
    if len(losses) != len(worlds) or not moved_any:
        return []
    return [{"name": "step", "before": losses[0], "losses": losses[1:], "sizes": list(SIZES)}]
