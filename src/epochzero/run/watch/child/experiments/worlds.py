"""Computes a tape again in several worlds at once, which differ in the values of some leaves, and compares them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._pytree import tree_flatten

from epochzero.run.watch.child.experiments.tape import Operator, Tape

_NORMALIZES = ("native_batch_norm", "_native_batch_norm_legit", "cudnn_batch_norm")
"""Operators by which the examples of a batch depend on each other as they should."""
_ROUNDING = 1e-6
"""Relative to the value and to a usual one: what is less may come from another order of additions."""
_SAMPLE = 10_000


class UnfitError(Exception):
    """The tape does not give what the job computed."""


@dataclass(frozen=True, slots=True)
class World:
    """What is different: values of leaves, by number.

    Attributes:
        inside: where a model is being called.
        outside: elsewhere, as in the loss.
        pinned: whether normalizations over the batch use the statistics of the first world.
    """

    inside: Mapping[int, torch.Tensor] = field(default_factory=dict)
    outside: Mapping[int, torch.Tensor] = field(default_factory=dict)
    pinned: bool = True

    def given(self, number: int, *, inside: bool) -> torch.Tensor | None:
        """The value of a leaf that is different."""
        return (self.inside if inside else self.outside).get(number)


Values = Sequence[Mapping[int, torch.Tensor]]
"""Of each world the values that are alive; of a world that failed none."""


def compute(
    tape: Tape,
    worlds: Sequence[World],
    observe: Callable[[int, Operator, Values], None],
    retain: frozenset[int],
    until: float,
) -> Values:
    """Computes the operators in each world, the first of which should be as it was.

    Args:
        tape: the operators.
        worlds: what is different.
        observe: called after each operator, while its arguments are alive.
        retain: numbers of tensors to be returned.
        until: time of this thread at which it ends.

    Returns:
        The retained values in each world.

    Raises:
        UnfitError: an operator fails in the first world, or there is no time left.
    """
    last = dict.fromkeys(retain, -1)
    for index, operator in enumerate(tape.operators):
        for number in operator.numbers:
            last[number] = last.get(number, index) if number in retain else index
    values: list[dict[int, torch.Tensor]] = [{} for _ in worlds]
    alive = set(range(len(worlds)))
    with _apart(tape):
        for index, operator in enumerate(tape.operators):
            if time.thread_time() > until:
                raise UnfitError("it takes too long")
            states = _states(tape) if _draws(operator) else []
            for number in sorted(alive):
                if states and number:
                    _set_states(tape, states)
                try:
                    _compute_one(tape, operator, worlds[number], values, number)
                except Exception as error:
                    if not number:
                        raise UnfitError(f"{operator.name}: {error}") from error
                    alive.discard(number)
                    values[number].clear()
            observe(index, operator, values)
            for gone in operator.numbers:
                if last.get(gone) == index and gone not in retain:
                    for of in values:
                        of.pop(gone, None)
    return values


def _compute_one(
    tape: Tape,
    operator: Operator,
    world: World,
    values: Sequence[dict[int, torch.Tensor]],
    number: int,
) -> None:
    mine = values[number]

    def value(wanted: int) -> torch.Tensor:
        if wanted in mine:
            return mine[wanted]
        found = world.given(wanted, inside=operator.inside)
        if found is None:
            found = tape.before.get(wanted, tape.leaves[wanted])
        if wanted in tape.before:
            found = mine[wanted] = found.detach().clone()
        return found.detach()

    if operator.drawn is not None:
        results: list[Any] = [drawn.clone() for drawn in operator.drawn]
        if operator.outputs and operator.outputs[0] in mine:
            results = [mine[operator.outputs[0]].copy_(results[0])]
    else:
        args, kwargs = operator.arguments(value)
        before = None
        if (
            number
            and world.pinned
            and operator.name in _NORMALIZES
            and operator.outputs[0] is not None
        ):
            before = _as_in_the_first(operator, values[0], args, tape)
        results = tree_flatten(operator.function(*args, **kwargs))[0]
        if before is not None:
            results[0] = before
    for output, result in zip(operator.outputs, results, strict=True):
        # What only a backward pass needs may be left out here.
        if output is not None and isinstance(result, torch.Tensor):
            mine[output] = result


def _as_in_the_first(
    operator: Operator, first: Mapping[int, torch.Tensor], args: Sequence[Any], tape: Tape
) -> torch.Tensor | None:
    """The output of a normalization over the batch, with the statistics of the first world."""
    output, _, scale = operator.outputs[:3]
    source = operator.inputs[0]
    if output is None or scale is None or first[scale].numel() != args[0].shape[1]:
        return None
    at = [1, -1, *[1] * (args[0].dim() - 2)]
    factor = first[scale].reshape(at)
    if args[1] is not None:
        factor = factor * args[1].reshape(at)
    origin = first.get(source, tape.leaves.get(source))
    return first[output] + (args[0] - origin) * factor if origin is not None else None


def changed(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor | None:
    """Which elements of two tensors differ by more than rounding; None where their shapes do."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return None
    differs = one != other
    if one.is_floating_point() and bool(differs.any()):
        size = torch.maximum(one.abs(), other.abs())
        # Masks of an attention are -inf or -1e9: no largest value, and nothing is near to infinity.
        size = size.masked_fill(size.isinf(), torch.nan)
        usual = size.reshape(-1)[:: 1 + size.numel() // _SAMPLE].nanmedian()
        near = (one - other).abs() <= _ROUNDING * torch.maximum(size, usual)
        differs = differs & ~near & ~(one.isnan() & other.isnan())
    return differs


def elementwise(tape: Tape, operator: Operator, world: World, values: Mapping[int, Any]) -> Any:
    """What an operator returns before it reduces it, if it does."""
    names = [argument.name for argument in operator.function._schema.arguments]
    result = values[operator.outputs[0]] if operator.outputs[0] is not None else None
    if "reduction" not in names:
        return result

    def value(wanted: int) -> Any:
        found = values.get(wanted)
        given = world.given(wanted, inside=operator.inside)
        return next(v for v in (found, given, tape.leaves.get(wanted)) if v is not None)

    args, kwargs = operator.arguments(value)
    at = names.index("reduction")
    if at < len(args):
        args[at] = 0
    else:
        kwargs["reduction"] = 0
    return tree_flatten(operator.function(*args, **kwargs))[0][0]


def _draws(operator: Operator) -> bool:
    seeded = torch.Tag.nondeterministic_seeded in operator.function.tags
    return seeded and operator.drawn is None


def random_states(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The states of the generators of the processor and of the devices of tensors."""
    devices = sorted({t.device.index or 0 for t in tensors if t.device.type == "cuda"})
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state(number) for number in devices)]


def _devices(tape: Tape) -> list[int]:
    return sorted({t.device.index or 0 for t in tape.leaves.values() if t.device.type == "cuda"})


def _states(tape: Tape) -> list[torch.Tensor]:
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state(n) for n in _devices(tape))]


def _set_states(tape: Tape, states: Sequence[torch.Tensor]) -> None:
    torch.set_rng_state(states[0])
    for number, state in zip(_devices(tape), states[1:], strict=False):
        torch.cuda.set_rng_state(state, number)


@contextmanager
def _apart(tape: Tape) -> Iterator[None]:
    """Neither gradients nor casts, and the random numbers of the recording; afterwards those of the job again."""
    now = _states(tape)
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        for device in {"cpu", *(t.device.type for t in tape.leaves.values())} & {"cpu", "cuda"}:
            stack.enter_context(torch.autocast(device, enabled=False))
        _set_states(tape, tape.random)
        try:
            yield
        finally:
            _set_states(tape, now)
