"""What a table's columns can hold, as levels: whole numbers from 0 that a search can step along.

An input is a vector of levels; `Domain.inputs` gives what the model is asked with. So one step means the next value of
a column, whether it holds counts, texts or standardized numbers, and no search leaves the domain.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from epochzero.errors import InputError

STEPS = 100
"""A column of more values is cut into so many even steps of its range."""
MOST_VALUES = 10_000
MOST_VARIANTS = 1000
"""Of the protected attributes of one input: each is asked about."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column and the values that it can have.

    Attributes:
        name: of the column.
        values: what the model is given for each level, ascending.
        texts: what the table holds for each level; empty for numbers.
    """

    name: str
    values: tuple[float, ...]
    texts: tuple[str, ...] = ()

    def shown(self, level: int) -> str:
        """The value of a level, as the table writes it."""
        return self.texts[level] if self.texts else f"{self.values[level]:g}"


@dataclass(frozen=True)
class Domain:
    """All inputs that a model can be asked about.

    Attributes:
        attributes: in the order of the model's inputs.
        protected: indices of those that must not decide.
    """

    attributes: tuple[Attribute, ...]
    protected: tuple[int, ...]

    def __post_init__(self) -> None:
        """Refuses protected attributes that cannot be varied.

        Raises:
            InputError: there are none, one has a single value, or they have too many values together.
        """
        if not self.protected:
            raise InputError("no attribute is protected; name them by --protected COLUMN,COLUMN")
        if len(self.protected) == len(self.attributes):
            raise InputError("all attributes are protected; one at least must be free to differ")
        for at in self.protected:
            if len(self.attributes[at].values) < 2:
                name = self.attributes[at].name
                raise InputError(
                    f"the protected attribute {name!r} has one value only; two at least are needed, "
                    "in the data or in --domains"
                )
        if not self.free.any():
            raise InputError(
                "no attribute has two values but the protected ones; nothing can be searched"
            )
        count = prod(len(self.attributes[at].values) for at in self.protected)
        if count > MOST_VARIANTS:
            raise InputError(
                f"the protected attributes have {count:,} combinations of values, more than {MOST_VARIANTS:,}: pass "
                "fewer attributes, or use larger steps in --domains"
            )

    @cached_property
    def counts(self) -> Tensor:
        """Number of levels of each attribute, shape (attributes,)."""
        return torch.tensor([len(one.values) for one in self.attributes])

    @cached_property
    def free(self) -> Tensor:
        """Whether a search can move an attribute: it is not protected, and has two values; shape (attributes,)."""
        mask = self.counts > 1
        mask[list(self.protected)] = False
        return mask

    @cached_property
    def variants(self) -> Tensor:
        """All combinations of levels of the protected attributes, shape (variants, protected)."""
        counts = [len(self.attributes[at].values) for at in self.protected]
        return torch.tensor(list(product(*map(range, counts))))

    @cached_property
    def variant_inputs(self) -> Tensor:
        """What the model is given for the protected attributes of each variant, shape (variants, protected)."""
        return self._values[torch.tensor(self.protected), self.variants]

    @cached_property
    def size(self) -> int:
        """How many inputs there are that differ in other than protected attributes."""
        return prod(
            len(one.values) for at, one in enumerate(self.attributes) if at not in self.protected
        )

    @cached_property
    def step_sizes(self) -> Tensor:
        """How much a model's input changes by a step, on average, shape (attributes,)."""
        return torch.tensor([
            (one.values[-1] - one.values[0]) / max(1, len(one.values) - 1)
            for one in self.attributes
        ])  # fmt: skip

    @cached_property
    def _values(self) -> Tensor:
        rows = [torch.tensor(one.values) for one in self.attributes]
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)

    def inputs(self, levels: Tensor) -> Tensor:
        """What the model is given, float32, of the same shape (..., attributes)."""
        return self._values[torch.arange(len(self.attributes)), levels]

    def levels(self, inputs: Tensor) -> Tensor:
        """The nearest levels of a model's inputs, shape (n, attributes), int64."""
        found = torch.empty(inputs.shape, dtype=torch.int64)
        for at, one in enumerate(self.attributes):
            values = torch.tensor(one.values)
            middles = (values[1:] + values[:-1]) / 2
            found[:, at] = torch.bucketize(inputs[:, at].contiguous(), middles)
        return found

    def drawn(self, count: int, draw: torch.Generator) -> Tensor:
        """Inputs drawn evenly from the domain, shape (count, attributes), int64 levels."""
        random = torch.rand(count, len(self.attributes), generator=draw)
        return (random * self.counts).long().minimum(self.counts - 1)

    def numbered(self, start: int, stop: int) -> Tensor:
        """The inputs of some of the numbers below `size`, of the first variant; shape (stop - start, attributes)."""
        numbers = torch.arange(start, stop)
        levels = torch.zeros(len(numbers), len(self.attributes), dtype=torch.int64)
        for at, one in enumerate(self.attributes):
            if at not in self.protected:
                levels[:, at] = numbers % len(one.values)
                numbers = numbers // len(one.values)
        return levels

    def moved(self, levels: Tensor, chosen: Tensor, signs: Tensor) -> Tensor:
        """Inputs with one attribute of each a step further; at an end of its range it goes the other way.

        Args:
            levels: shape (n, attributes).
            chosen: which attribute moves, shape (n, 1).
            signs: 1 or -1, shape (n, 1).
        """
        there = levels.gather(1, chosen) + signs
        outside = (there < 0) | (there >= self.counts[chosen])
        moved = levels.scatter_add(1, chosen, torch.where(outside, -signs, signs))
        return moved.clamp_min(0).minimum(self.counts - 1)

    def variant_of(self, levels: Tensor) -> Tensor:
        """Which of `variants` an input is, shape (n,)."""
        index = torch.zeros(len(levels), dtype=torch.int64)
        for at in self.protected:
            index = index * len(self.attributes[at].values) + levels[:, at]
        return index

    def with_variant(self, levels: Tensor, variant: Tensor) -> Tensor:
        """The inputs with the protected attributes of other variants, shape (n, attributes)."""
        changed = levels.clone()
        changed[:, list(self.protected)] = self.variants[variant]
        return changed


def attribute_of(name: str, cells: Sequence[Any], told: Any = None) -> Attribute:
    """The values of a column: those that are told, or by what it holds.

    Texts are numbered in their order. Whole numbers over a range of at most 100 may be any of them; other
    numbers are those that occur, if at most 100 do, or else 100 even steps of their range.

    Args:
        name: of the column.
        cells: what it holds, with no empty cell among them.
        told: of a file of domains: a list of values, or a mapping of low, high and step.

    Raises:
        InputError: the domain is not valid, or there are too many different strings.
    """
    if told is not None:
        return _told(name, told)
    try:
        numbers = np.unique(np.asarray(cells, np.float64))
    except (TypeError, ValueError):
        texts = tuple(sorted({str(cell) for cell in cells}))
        if len(texts) > MOST_VALUES:
            raise InputError(
                f"column {name!r}: contains {len(texts):,} different strings, more than {MOST_VALUES:,}; remove it if it "
                "is an ID of the record"
            ) from None
        return Attribute(name, tuple(map(float, range(len(texts)))), texts)
    low, high = float(numbers[0]), float(numbers[-1])
    whole = bool((numbers == numbers.round()).all())
    if whole and high - low <= STEPS:
        return Attribute(name, tuple(np.arange(low, high + 1).tolist()))
    if len(numbers) <= STEPS:
        return Attribute(name, tuple(numbers.tolist()))
    steps = np.linspace(low, high, STEPS)
    return Attribute(name, tuple(np.unique(steps.round() if whole else steps).tolist()))


def read_domains(path: Path) -> Mapping[str, Any]:
    """The domains of columns in a TOML file.

    Raises:
        InputError: it cannot be read, or is no TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: invalid TOML: {error}") from error


def _told(name: str, told: Any) -> Attribute:
    if isinstance(told, list) and told:
        if all(isinstance(one, str) for one in told) and len(set(told)) == len(told):
            return Attribute(name, tuple(map(float, range(len(told)))), tuple(told))
        if all(_is_number(one) for one in told):
            return Attribute(name, tuple(sorted({float(one) for one in told})))
    if isinstance(told, dict) and {"low", "high"} <= set(told) <= {"low", "high", "step"}:
        low, high, step = told["low"], told["high"], told.get("step", 1)
        if all(map(_is_number, (low, high, step))) and high > low and step > 0:
            if (high - low) / step > MOST_VALUES:
                raise InputError(
                    f"domain of {name!r}: has more than {MOST_VALUES:,} values; widen its step"
                )
            return Attribute(
                name, tuple(low + step * n for n in range(round((high - low) // step) + 1))
            )
    raise InputError(
        f"domain of {name!r}: expected a list of strings or numbers, or {{ low = 17, high = 90, step = 1 }}, "
        f"not {str(told)[:60]}"
    )


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))
    )
