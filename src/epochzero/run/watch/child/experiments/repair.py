"""Proof by repair: the loss of the recorded batch as it is, with a suspected thing corrected, and with a control that must not help.

Nothing is trained: weights that have learned from some correct examples fit corrected ones better, and those of the
beginning fit inputs of the scale that they were drawn for. Corrections of targets are tried on the operators behind the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from epochzero.run.watch.child.experiments.dependence import RecordedStep
from epochzero.run.watch.child.experiments.tape import Tape
from epochzero.run.watch.child.experiments.worlds import UnfitError, World, compute

_MOST_ROWS, _MOST_NUMBERS = 8, 1 << 22
"""Examples whose targets are corrected one by one, and numbers in all of these targets."""
_FEWEST, _MOST_EXAMPLES = 8, 256
"""Examples whose mean and spread are known: of more, some at even distances."""
_CONTROL, _TINY = "control", 1e-12
Moments = tuple[torch.Tensor, torch.Tensor]
"""The mean and the spread of each column or channel of inputs."""
Targets = Mapping[int, torch.Tensor]


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
    """Losses ``as_is`` and ``corrected``: of inputs of another scale, and how far they are ``apart``; of targets, and of a ``control``.

    Args:
        subject: the recording.
        evaluated: of the inputs of evaluations.
        until: time of this thread at which the experiment ends.

    Raises:
        UnfitError: the tape does not give the loss of the job, or it takes too long.
    """
    others = _corrections({n: subject.tape.leaves[n] for n in subject.targets})
    scaled = list(_scaled(subject, evaluated))
    if subject.count < _FEWEST or not (others or scaled):
        return []
    tape = subject.tape
    behind = [operator for operator in tape.operators if not operator.inside]
    made = {n for operator in tape.operators if operator.inside for n in operator.outputs}
    given = frozenset(n for operator in behind for n in operator.inputs if n in made)
    worlds = [World(), *(world for _, world in scaled)]
    values = compute(tape, worlds, lambda *_: None, given | {subject.loss}, until)
    as_is, *losses = (float(of[subject.loss].float().sum()) for of in values if of)
    found = [
        {"name": "repair", **fact, "as_is": as_is, "corrected": loss}
        for (fact, _), loss in zip(scaled, losses, strict=False)
    ]
    before = {n: values[0][n] for n in given}
    leaves, written = {**tape.leaves, **before}, {**tape.before, **before}
    rest = replace(tape, operators=behind, leaves=leaves, before=written)
    return found + _by_example(subject, rest, others, until)


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


def _by_example(
    subject: RecordedStep, behind: Tape, others: Mapping[str, Targets], until: float
) -> list[dict[str, Any]]:
    """The losses where each example is corrected that this helps, next to the same with targets of other examples."""
    rows = range(min(subject.count, _MOST_ROWS))
    found = {}
    for name, other in others.items():
        own = {n: subject.tape.leaves[n] for n in other}
        single = [_mixed(own, other, [row]) for row in rows]
        as_is, *losses = _losses(behind, subject.loss, [{}, *single], until)
        chosen = [row for row, loss in zip(rows, losses, strict=True) if loss < as_is]
        loss = _losses(behind, subject.loss, [{}, _mixed(own, other, chosen)], until)[1]
        found[name] = {"as_is": as_is, "corrected": loss, "share": len(chosen) / len(rows)}
    control = found.pop(_CONTROL, {"corrected": None})["corrected"]
    return [
        {"name": "repair", "correction": name, "control": control, **of}
        for name, of in found.items()
    ]


def _mixed(own: Targets, other: Targets, rows: Sequence[int]) -> Targets:
    found = {n: value.clone() for n, value in own.items()}
    for n, value in found.items():
        value[rows] = other[n][rows]
    return found


def _losses(tape: Tape, loss: int, targets: Sequence[Targets], until: float) -> list[float]:
    worlds = [World(outside=of) for of in targets]
    values = compute(tape, worlds, lambda *_: None, frozenset((loss,)), until)
    if not all(values):
        raise UnfitError("a corrected target does not fit the loss")
    return [float(of[loss].float().sum()) for of in values]


def _corrections(targets: Targets) -> Mapping[str, Targets]:
    """Targets of the places of an image, as a flip of the image would move them, and those of other examples for comparison."""
    places = {n: value for n, value in targets.items() if value.dim() > 2}
    if not places or sum(v.numel() for v in places.values()) * _MOST_ROWS > _MOST_NUMBERS:
        return {}
    return {
        "flipped left to right": {n: value.flip(-1) for n, value in places.items()},
        "flipped upside down": {n: value.flip(-2) for n, value in places.items()},
        _CONTROL: {n: value.roll(1, 0) for n, value in places.items()},
    }
