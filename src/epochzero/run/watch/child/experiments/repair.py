"""Proof by repair: compares the loss of the recorded batch with its loss for inputs of another scale.

Nothing is trained: weights of the beginning fit inputs of the scale that they were drawn for, and later ones those that they have
learned from. Corrections of targets need no model; see `pairing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from epochzero.run.watch.child.experiments.dependence import RecordedStep
from epochzero.run.watch.child.experiments.worlds import World, compute

_FEWEST, _MOST_EXAMPLES = 8, 256
"""Examples whose mean and spread are known: of more, some at even distances."""
_TINY = 1e-12
Moments = tuple[torch.Tensor, torch.Tensor]
"""The mean and the spread of each column or channel of inputs."""


def moments(value: torch.Tensor) -> Moments | None:
    """Of inputs of numbers; None for a few examples."""
    is_table = value.is_floating_point() and value.layout is torch.strided and value.dim() > 1
    if not is_table or len(value) < _FEWEST:
        return None
    over = [d for d in range(value.dim()) if d != 1]
    flat = value.detach()[:: -(-len(value) // _MOST_EXAMPLES)].float()
    return flat.mean(over, keepdim=True), flat.std(over, keepdim=True)


def distance(one: Moments, other: Moments) -> float:
    """How far inputs are apart, in their spreads, in the mean of columns; infinity where these are others."""
    if one[0].shape != other[0].shape or one[0].device != other[0].device:
        return float("inf")
    spread = torch.maximum(one[1], other[1]).clamp(min=_TINY)
    return float(((one[0] - other[0]).abs() / spread + (one[1] - other[1]).abs() / spread).mean())


def facts(
    subject: RecordedStep, evaluated: Sequence[Moments], until: float
) -> list[dict[str, Any]]:
    """Losses ``as_is`` and ``corrected``: of inputs of another scale, and how far they are ``apart``.

    Args:
        subject: the recording.
        evaluated: of the inputs of evaluations.
        until: time of this thread at which the experiment ends.

    Raises:
        UnfitError: the tape does not give the loss of the job, or it takes too long.
    """
    scaled = list(_scaled(subject, evaluated))
    if subject.count < _FEWEST or not scaled:
        return []
    worlds = [World(), *(world for _, world in scaled)]
    values = compute(subject.tape, worlds, lambda *_: None, frozenset((subject.loss,)), until)
    as_is, *losses = (float(of[subject.loss].float().sum()) for of in values if of)
    return [
        {"name": "repair", **fact, "as_is": as_is, "corrected": loss}
        for (fact, _), loss in zip(scaled, losses, strict=False)
    ]


def _scaled(
    subject: RecordedStep, evaluated: Sequence[Moments]
) -> Iterator[tuple[dict[str, Any], World]]:
    """Inputs of the scale of evaluations; before the first of them, standardized."""
    first = subject.inputs[0] if subject.inputs else -1
    value = subject.tape.before.get(first, subject.tape.leaves.get(first))
    own = moments(value) if value is not None else None
    if value is None or own is None:
        return
    standard = (torch.zeros_like(own[0]), torch.ones_like(own[1]))
    mean, spread = nearest = min(evaluated, key=lambda of: distance(own, of), default=standard)
    inputs = (value - own[0]) / own[1].clamp(min=_TINY) * spread + mean
    name = "as_evaluated" if evaluated else "standardized"
    # Evaluations normalize by the statistics of the training, which are about those of this batch.
    world = World(inside={first: inputs.to(value.dtype)}, pinned=bool(evaluated))
    yield {"correction": name, "apart": distance(own, nearest)}, world
