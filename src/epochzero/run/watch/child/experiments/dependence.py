"""What the output of a model and the loss depend on, and the operator where a dependence begins or ends.

One example is changed, then all others, then targets, inputs and parameters, each in a world of its own. An element of a
tensor depends on what was changed if it differs from the first world; one that differs both when one example is changed and
when all others are depends on several examples. No dimension has to be known for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from epochzero.run.watch.child.experiments.tape import Operator, Tape
from epochzero.run.watch.child.experiments.worlds import (
    UnfitError,
    Values,
    World,
    changed,
    compute,
    elementwise,
)

EXAMPLE, OTHERS, TARGET, TARGETS, CUT = "example", "others", "target", "targets", "cut"
AHEAD, PAST = "ahead", "past"
_LEAST, _MOST_INPUTS, _MOST_COMPARED = 4, 4, 4
_STATISTICS = (
    "mean",
    "var",
    "std",
    "var_mean",
    "std_mean",
    "sum",
    "amax",
    "amin",
    "max",
    "min",
    "norm",
    "linalg_vector_norm",
)
"""Operators by which a program may compute statistics of a batch, as a normalization of its own does."""

_FILLS = ("masked_fill", "masked_fill_")
_LARGEST, _SMALLEST = ("max", "amax"), ("min", "amin")
_WEIGHS = ("_softmax", "_safe_softmax", "_log_softmax")
_LEAST_WEIGHT = 0.01
"""Of all that a mask excludes, on average: a penalty instead of an exclusion leaves less."""
_RESHAPES = ("view", "_unsafe_view", "_reshape_alias")
Fact = dict[str, Any]


@dataclass(slots=True)
class RecordedStep:
    """A recorded training step and the role of each tensor in it, from which experiments choose what to change.

    Attributes:
        tape: the recording.
        loss: number of the loss.
        value: the loss that the job computed.
        inputs: leaves that the model was called with, whose first dimension is the batch.
        parameters: leaves that are parameters.
        without: parameters that an optimizer holds and that have no gradient after the backward pass.
        unread: positions of inputs that no operator was given.
        targets: leaves that the loss is computed from, with a row an example.
    """

    tape: Tape
    loss: int
    value: torch.Tensor
    inputs: Sequence[int]
    parameters: frozenset[int]
    without: Sequence[int] = ()
    unread: Sequence[int] = ()
    targets: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Finds the targets: leaves of a row an example that the loss is computed from outside models."""
        leaves, count = self.tape.leaves, self.count
        # What reaches the loss through a model only is an input of a later call.
        useful = _ancestors(self.tape, [self.loss], outside=True)
        for operator in self.tape.operators:
            for number in () if operator.inside else operator.inputs:
                leaf = leaves.get(number)
                if (
                    leaf is not None
                    and leaf.dim()
                    and leaf.shape[0] in (count, count * self.length)
                    and number in useful
                    and number not in self.parameters
                    and number not in self.targets
                ):
                    self.targets.append(number)

    @property
    def count(self) -> int:
        """Examples of the batch."""
        return self.tape.leaves[self.inputs[0]].shape[0] if self.inputs else 0

    @property
    def length(self) -> int:
        """Positions of a sequence of tokens, or of vectors; 1 where an input is neither."""
        first = self.tape.leaves[self.inputs[0]] if self.inputs else None
        is_sequence = first is not None and first.dim() == 3 - (not first.is_floating_point())
        return first.shape[1] if first is not None and is_sequence else 1

    def by_example(self, value: torch.Tensor) -> torch.Tensor:
        """A target with a row an example, also where it has one a position."""
        return (
            value if len(value) == self.count else value.reshape(self.count, -1, *value.shape[1:])
        )


def facts(subject: RecordedStep, until: float) -> list[Fact]:
    """What is found by changing examples, targets, inputs and parameters.

    Args:
        subject: what is recorded.
        until: time of this thread at which the experiment ends.

    Raises:
        UnfitError: the tape does not give the loss of the job, or it takes too long.
    """
    return _Comparison(subject).facts(until)


class _Comparison:
    def __init__(self, subject: RecordedStep) -> None:
        self._subject, self._tape = subject, subject.tape
        self._worlds = {"": World(), **dict(_worlds(subject))}
        self._names = list(self._worlds)
        self._useful = _ancestors(self._tape, [subject.loss, *self._tape.outputs])
        self._touched: dict[str, set[int]] = {name: set() for name in self._names}
        self._mixed: set[int] = set()
        self._by_example: set[int] = set()
        self._mixing: list[tuple[Operator, float, bool]] = []
        self._ends: dict[str, Operator] = {}
        self._last: dict[str, Operator] = {}
        self._connected = {n for n in subject.parameters if self._tape.leaves[n].requires_grad}
        self._scrambled: Operator | None = None
        self._cut: Operator | None = None
        self._ahead: Operator | None = None
        self._compared: list[tuple[Operator, dict[str, Any], bool]] = []
        self._filled: dict[int, tuple[Operator, torch.Tensor]] = {}
        self._chosen: list[Fact] = []
        for name, world in self._worlds.items():
            self._touched[name] |= {*world.inside, *world.outside}

    def facts(self, until: float) -> list[Fact]:
        subject = self._subject
        retained = frozenset((subject.loss, *self._tape.outputs))
        worlds = list(self._worlds.values())
        values = compute(self._tape, worlds, self._observe, retained, until)
        loss = values[0].get(subject.loss)
        if loss is None or not torch.equal(loss, subject.value):
            raise UnfitError("the recomputed loss differs")
        alive = {name for name, of in zip(self._names, values, strict=True) if of}
        return [
            fact
            for find in (
                self._of_examples,
                self._of_inputs,
                self._of_views,
                self._of_pairs,
                self._of_ahead,
                self._of_targets,
                self._of_cut,
            )
            for fact in find(alive)
        ] + self._chosen[:1]

    # While it is computed -------------------------------------------------------------------------

    def _observe(self, index: int, operator: Operator, values: Values) -> None:
        outputs = [n for n in operator.outputs if n is not None and n in values[0]]
        masks: dict[tuple[str, int], Any] = {}
        for name, of in zip(self._names[1:], values[1:], strict=True):
            given = self._changed_of(name, operator)
            for number in outputs:
                mask = None
                if given and number in of:
                    mask = changed(values[0][number], of[number])
                    if mask is None or bool(mask.any()):
                        masks[name, number] = mask
                        self._last[name] = operator
                        self._touched[name].add(number)
                        continue
                self._touched[name].discard(number)
            if given and not any((name, number) in masks for number in outputs) and outputs:
                self._ends[name] = operator
        self._note_mixing(operator, outputs, masks, values)
        self._note_ahead(operator, outputs, masks)
        self._note_cut(operator, outputs, masks)
        self._note_filled(operator, outputs, values[0])
        if not operator.inside and len(self._compared) < _MOST_COMPARED:
            self._note_compared(operator, outputs, values)

    def _changed_of(self, name: str, operator: Operator) -> set[int]:
        """The arguments of an operator that differ in a world."""
        world, leaves = self._worlds[name], self._tape.leaves
        differs = world.inside if operator.inside else world.outside
        given = self._touched[name] & set(operator.inputs)
        return {n for n in given if n not in leaves or n in differs}

    def _note_mixing(
        self,
        operator: Operator,
        outputs: Iterable[int],
        masks: Mapping[Any, Any],
        values: Values,
    ) -> None:
        for number in outputs:
            if operator.name in _RESHAPES and not (self._mixing or self._scrambled):
                mask = masks.get((EXAMPLE, number))
                if mask is not None and not _is_in_rows(mask, self._subject.count):
                    self._scrambled = operator
            one, others = masks.get((EXAMPLE, number)), masks.get((OTHERS, number))
            both = one & others if one is not None and others is not None else None
            if both is None or not bool(both.any()):
                self._mixed.discard(number)
                continue
            if not self._mixed & set(operator.inputs):
                is_number = values[0][number].is_floating_point()
                self._mixing.append((operator, float(both.float().mean()), is_number))
            self._mixed.add(number)
            if (
                both.dim()
                and len(both) % self._subject.count == 0
                and both.shape[:2] != (len(both),) * 2
            ):
                self._by_example.add(number)

    def _note_ahead(
        self, operator: Operator, outputs: Iterable[int], masks: Mapping[Any, Any]
    ) -> None:
        """Notes the first operator by which earlier positions depend on later ones."""
        length = self._subject.length
        for number in outputs if self._ahead is None and operator.inside else ():
            mask = masks.get((AHEAD, number))
            if mask is None:
                continue
            first = torch.arange(length // 2, device=mask.device)
            along = [d for d, size in enumerate(mask.shape) if size == length]
            if along and all(bool(mask.index_select(d, first).any()) for d in along):
                self._ahead = operator

    def _note_cut(
        self, operator: Operator, outputs: Iterable[int], masks: Mapping[Any, Any]
    ) -> None:
        follows = operator.tracked and operator.name not in ("detach", "alias")
        was = bool(self._connected & set(operator.inputs))
        for number in outputs:
            if was and follows:
                self._connected.add(number)
            elif was and (CUT, number) in masks and number in self._useful and self._cut is None:
                self._cut = operator

    def _note_compared(self, operator: Operator, outputs: Sequence[int], values: Values) -> None:
        if not {EXAMPLE, OTHERS, TARGET} <= set(self._names) or not set(outputs) & self._useful:
            return
        by_input = self._changed_of(EXAMPLE, operator) | self._changed_of(OTHERS, operator)
        by_target = self._changed_of(TARGET, operator)
        # What follows the first comparison, as its mean, depends on both in any case.
        if not by_input or not by_target or by_input & by_target:
            return
        found: dict[str, Any] = {}
        first = elementwise(self._tape, operator, World(), values[0])
        for name in {EXAMPLE, OTHERS, TARGET, AHEAD, PAST} & set(self._names):
            at = self._names.index(name)
            if values[at]:
                other = elementwise(self._tape, operator, self._worlds[name], values[at])
                found[name] = changed(first, other)
        shapes = [self._shape(number, values[0]) for number in operator.inputs]
        self._compared.append((operator, found, _spreads(list(first.shape), shapes)))

    def _note_filled(self, operator: Operator, outputs: Sequence[int], values: Any) -> None:
        """Notes elements that a mask has filled, and where the largest, the smallest or weights are those of filled ones."""
        if operator.name in _FILLS and outputs:
            mask = values.get(operator.inputs[1], self._tape.leaves.get(operator.inputs[1]))
            filled = values[outputs[0]]
            if filled.is_floating_point():
                self._filled[outputs[0]] = operator, mask.expand_as(filled).clone()
        elif operator.inputs and operator.inputs[0] in self._filled and set(outputs) & self._useful:
            fill, mask = self._filled[operator.inputs[0]]
            if _chooses_filled(operator, values[operator.inputs[0]], mask, values[outputs[0]]):
                at = {"filled": fill.place, "inside": operator.inside}
                self._chosen.append(_fact("chooses_filled", operator, **at))

    def _shape(self, number: int, values: Mapping[int, torch.Tensor]) -> list[int]:
        return list(values.get(number, self._tape.leaves.get(number, torch.empty(0))).shape)

    def _maker(self, numbers: Sequence[int]) -> Operator | None:
        """The operator that made the first of these tensors."""
        made = (o for o in self._tape.operators if numbers and numbers[0] in o.outputs)
        return next(made, None)

    def _end(self, name: str) -> Operator | None:
        """The last operator whose arguments differ and whose result does not, or is not used."""
        return self._ends.get(name) or self._last.get(name)

    # What it shows --------------------------------------------------------------------------------

    def _of_examples(self, alive: set[str]) -> Iterable[Fact]:
        if not {EXAMPLE, OTHERS} <= alive or self._is_of_neighbors():
            return
        subject = self._subject
        targets = [value for n in subject.targets if len(value := self._tape.leaves[n])]
        outputs = [n for n in self._tape.outputs if n in self._mixed and n in self._by_example]
        by_position = any(value.shape[1:2] == (subject.length,) for value in targets)
        if not targets:
            return
        leading = _ancestors(self._tape, outputs)
        for operator, share, is_number in self._mixing:
            if operator.inside and leading & {n for n in operator.outputs if n is not None}:
                if operator.name not in _STATISTICS and is_number:
                    reshaped = self._scrambled and self._scrambled.place
                    numbers = {"share": share, "by_position": by_position}
                    yield _fact("mixes_examples", operator, reshaped=reshaped, **numbers)
                return

    def _is_of_neighbors(self) -> bool:
        """Whether a graph joins the rows of the batch: a matrix of all pairs, or a list of edges."""
        count = self._subject.count
        return any(
            value.layout is not torch.strided
            or value.shape[-2:] == (count, count)
            or (value.dim() == 2 and len(value) == 2 and not value.is_floating_point())
            for value in self._tape.leaves.values()
        )

    def _of_inputs(self, alive: set[str]) -> Iterable[Fact]:
        reached = {*self._tape.outputs, self._subject.loss}
        if {EXAMPLE, OTHERS} <= alive and not any(
            self._touched[name] & reached for name in (EXAMPLE, OTHERS)
        ):
            yield _fact("ignores_inputs", self._end(OTHERS))
            return
        for position in self._subject.unread:
            yield _fact("ignores_input", self._maker(self._tape.outputs[:1]), input=position)
        for name in alive:
            if name.startswith("input ") and not self._touched[name] & reached:
                yield _fact("ignores_input", self._end(name), input=int(name.split()[1]))

    def _of_views(self, _: set[str]) -> Iterable[Fact]:
        """Calls of one layer, to be trained, with other tensors of the same values."""
        leaves, count = self._tape.leaves, self._subject.count
        views = {
            n: value
            for n, value in leaves.items()
            if value.is_floating_point() and value.dim() > 1 and len(value) == count >= _LEAST
            if n not in self._subject.parameters and not torch.equal(value, value.roll(1, 0))
        }
        first: dict[tuple[str, str], torch.Tensor] = {}
        for operator in self._tape.operators if len(views) > 1 else ():
            given = operator.inputs if operator.inside and operator.tracked else ()
            for value in (views[n] for n in given if n in views):
                before = first.setdefault((operator.layer, operator.name), value)
                if before is not value and torch.equal(before, value):
                    yield _fact("same_views", operator)
                    return

    def _of_pairs(self, alive: set[str]) -> Iterable[Fact]:
        if not {EXAMPLE, OTHERS, TARGET} <= alive or not self._compared:
            return
        verdicts = []
        for operator, found, spreads in self._compared:
            masks = [m for name in (TARGET, EXAMPLE, OTHERS) if (m := found.get(name)) is not None]
            if len(masks) < 3 or len({mask.shape for mask in masks}) > 1:
                return
            target, example, others = masks
            if spreads and bool((target & ~example).any()) and bool((target & others).any()):
                yield _fact("compares_all_pairs", operator, shape=list(target.shape))
                return
            apart = not bool((target & example).any()) and bool((target & others).any())
            verdicts.append(apart and bool(example.any()))
        if verdicts and all(verdicts):
            yield _fact("pairs_others", self._compared[0][0])

    def _of_ahead(self, alive: set[str]) -> Iterable[Fact]:
        for _, found, _ in self._compared if {AHEAD, PAST} <= alive else ():
            ahead, past = found.get(AHEAD), found.get(PAST)
            if ahead is not None and past is not None and ahead.shape == past.shape:
                both = ahead & past
                if bool(both.any()):
                    share = float(both.sum() / past.sum())
                    yield _fact("sees_ahead", self._ahead, share=share)
                    return

    def _of_targets(self, alive: set[str]) -> Iterable[Fact]:
        if TARGETS in alive and self._subject.loss not in self._touched[TARGETS]:
            yield _fact("ignores_targets", self._end(TARGETS))

    def _of_cut(self, alive: set[str]) -> Iterable[Fact]:
        if CUT in alive and self._subject.loss in self._touched[CUT] and self._cut is not None:
            yield _fact("cuts_gradients", self._cut, parameters=len(self._subject.without))


def _chooses_filled(
    operator: Operator, values: torch.Tensor, mask: torch.Tensor, result: torch.Tensor
) -> bool:
    """Whether an operator that chooses or weighs elements along a dimension chooses those that a mask has filled."""
    dimension = operator.flat[1] if len(operator.flat) > 1 else None
    if type(dimension) is not int or not -values.dim() <= dimension < values.dim():
        return False
    rows = mask.any(dimension) & ~mask.all(dimension)
    if int(rows.sum()) < _LEAST:
        return False
    if operator.name in _WEIGHS:
        weights = result.exp() if operator.name == "_log_softmax" else result
        return bool((weights * mask).sum(dimension)[rows].mean() > _LEAST_WEIGHT)
    if operator.name not in _LARGEST + _SMALLEST:
        return False
    largest = operator.name in _LARGEST
    worst = float("-inf" if largest else "inf")
    best, filled = (
        part.amax(dimension) if largest else part.amin(dimension)
        for part in (values.masked_fill(mask, worst), values.masked_fill(~mask, worst))
    )
    # Where both are equal, as after collapse, it is open which one was chosen.
    decided = rows & (best != filled)
    chosen = (result.reshape(best.shape) == filled)[decided]
    return bool(chosen.all()) and 2 * int(decided.sum()) >= int(rows.sum())


def _fact(name: str, operator: Operator | None, **numbers: Any) -> Fact:
    at = {} if operator is None else {
        "operator": operator.name, "place": operator.place, "layer": operator.layer,
    }  # fmt: skip
    return {"name": name, **at, **numbers}


def _is_in_rows(mask: torch.Tensor, count: int) -> bool:
    """Whether the elements of one of so many examples are in its share of the rows of some dimension."""
    for dimension, size in enumerate(mask.shape):
        if size % count == 0:
            others = [d for d in range(mask.dim()) if d != dimension]
            rows = mask.any(others) if others else mask
            if int(rows.sum()) <= size // count:
                return True
    return False


def _spreads(result: list[int], shapes: Sequence[list[int]]) -> bool:
    """Whether a result of (N, N) comes from shapes of other numbers of dimensions, such as (N, 1) and (N,)."""
    square = len(result) == 2 and result[0] == result[1] > 1
    return square and len({len(shape) for shape in shapes if shape}) > 1


def _worlds(subject: RecordedStep) -> Iterable[tuple[str, World]]:
    """What is changed in each world; nothing where all examples are alike."""
    leaves = {n: subject.tape.before.get(n, subject.tape.leaves[n]) for n in subject.inputs}
    if subject.count >= _LEAST and leaves:
        other = _other(leaves.values())
        if other is not None:
            one = {n: _with_row(value, 0, value[other]) for n, value in leaves.items()}
            rest = {n: value[:1].expand_as(value).clone() for n, value in leaves.items()}
            yield EXAMPLE, World(inside=one)
            yield OTHERS, World(inside=rest)
        if 1 < len(leaves) <= _MOST_INPUTS:
            for position, (number, value) in enumerate(leaves.items()):
                if not torch.equal(value, value.roll(1, 0)):
                    yield f"input {position}", World(inside={number: value.roll(1, 0)})
        yield from _of_targets(subject)
    if subject.without:
        more = {n: subject.tape.leaves[n].detach() * 1.5 + 0.01 for n in subject.without}
        yield CUT, World(inside=more, outside=more)


def _of_targets(subject: RecordedStep) -> Iterable[tuple[str, World]]:
    leaves = subject.tape.leaves
    targets = {
        n: subject.by_example(leaves[n]) for n in subject.targets if n not in subject.tape.before
    }
    other = _other(targets.values()) if targets else None
    if other is None:
        return
    one = {n: _with_row(v, 0, v[other]).reshape(leaves[n].shape) for n, v in targets.items()}
    every = {n: v[other].expand_as(v).clone().reshape(leaves[n].shape) for n, v in targets.items()}
    yield TARGET, World(outside=one)
    yield TARGETS, World(outside=every)
    first, middle = subject.inputs[0], subject.length // 2
    of_positions = {n: v for n, v in targets.items() if v.shape[1:2] == (subject.length,)}
    if middle < _LEAST // 2 or not of_positions or first in subject.tape.before:
        return
    tokens = leaves[first].clone()
    tokens[:, middle:] = tokens[:, middle:].roll(1, 0)
    past = {n: v.clone() for n, v in of_positions.items()}
    for value in past.values():
        value[:, :middle] = value[:, :middle].roll(1, 0)
    yield AHEAD, World(inside={first: tokens})
    yield PAST, World(outside={n: v.reshape(leaves[n].shape) for n, v in past.items()})


def _other(values: Iterable[torch.Tensor]) -> int | None:
    """The example that differs from the first in most numbers; None where none does."""
    unlike = torch.stack([
        (value != value[:1]).reshape(len(value), -1).float().mean(1).cpu() for value in values
    ]).sum(0)  # fmt: skip
    return int(unlike.argmax()) if bool(unlike.any()) else None


def _with_row(value: torch.Tensor, row: int, content: torch.Tensor) -> torch.Tensor:
    found = value.detach().clone()
    found[row] = content
    return found


def _ancestors(tape: Tape, numbers: Iterable[int], *, outside: bool = False) -> set[int]:
    """All tensors that these were computed from, and they themselves; if ``outside``, by operators outside of models."""
    found = set(numbers)
    for operator in reversed(tape.operators):
        if outside and operator.inside:
            continue
        written = operator.inputs[:1] if operator.function._schema.is_mutable else []
        if found & {*(n for n in operator.outputs if n is not None), *written}:
            found.update(operator.inputs)
    return found
