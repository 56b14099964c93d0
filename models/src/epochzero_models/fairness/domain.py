"""The possible values of a table's columns as levels: integers from 0, along which a search can step.

An input is a vector of levels; `Domain.inputs` converts it to the model's input. A step is the next value of a column,
whether it holds counts, texts or standardized numbers, and no search leaves the domain.
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
"""A column with more values is divided into this many equal steps of its range."""
MOST_VALUES = 10_000
MOST_VARIANTS = 1000
"""Maximum number of variants of an input: each is evaluated."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column and its possible values.

    Attributes:
        name: of the column.
        values: the model's input for each level, ascending.
        texts: the table's text for each level; empty for numbers.
    """

    name: str
    values: tuple[float, ...]
    texts: tuple[str, ...] = ()

    def shown(self, level: int) -> str:
        """Return the value of a level as the table writes it."""
        return self.texts[level] if self.texts else f"{self.values[level]:g}"


@dataclass(frozen=True)
class Domain:
    """All possible inputs of a model.

    Attributes:
        attributes: in the order of the model's inputs.
        protected: indices of the protected ones.
    """

    attributes: tuple[Attribute, ...]
    protected: tuple[int, ...]

    def __post_init__(self) -> None:
        """Reject protected attributes that cannot be varied.

        Raises:
            InputError: there are none, one has a single value, or they have too many combinations.
        """
        if not self.protected:
            raise InputError("no attribute is protected; pass --protected COLUMN,COLUMN")
        if len(self.protected) == len(self.attributes):
            raise InputError(
                "all attributes are protected; at least one attribute must be unprotected"
            )
        for at in self.protected:
            if len(self.attributes[at].values) < 2:
                name = self.attributes[at].name
                raise InputError(
                    f"the protected attribute {name!r} has only one value; at least two are required, "
                    "in the data or in --domains"
                )
        if not self.free.any():
            raise InputError(
                "only protected attributes have two or more values; there is nothing to search"
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
        return torch.tensor([len(attribute.values) for attribute in self.attributes])

    @cached_property
    def free(self) -> Tensor:
        """Whether a search can change an attribute: unprotected, with two or more values; shape (attributes,)."""
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
        """The model's inputs for the protected attributes of each variant, shape (variants, protected)."""
        return self._values[torch.tensor(self.protected), self.variants]

    @cached_property
    def size(self) -> int:
        """Number of inputs, not counting variants."""
        return prod(
            len(attribute.values)
            for at, attribute in enumerate(self.attributes)
            if at not in self.protected
        )

    @cached_property
    def step_sizes(self) -> Tensor:
        """Mean change of a model's input per step, shape (attributes,)."""
        return torch.tensor([
            (attribute.values[-1] - attribute.values[0]) / max(1, len(attribute.values) - 1)
            for attribute in self.attributes
        ])  # fmt: skip

    @cached_property
    def _values(self) -> Tensor:
        rows = [torch.tensor(attribute.values) for attribute in self.attributes]
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)

    def inputs(self, levels: Tensor) -> Tensor:
        """Convert levels to the model's inputs, float32, same shape (..., attributes)."""
        return self._values[torch.arange(len(self.attributes)), levels]

    def levels(self, inputs: Tensor) -> Tensor:
        """Return the nearest levels of a model's inputs, shape (n, attributes), int64."""
        found = torch.empty(inputs.shape, dtype=torch.int64)
        for at, attribute in enumerate(self.attributes):
            # In float32 the middle of two neighboring numbers is one of them.
            values = torch.tensor(attribute.values, dtype=torch.float64)
            middles = (values[1:] + values[:-1]) / 2
            found[:, at] = torch.bucketize(inputs[:, at].double(), middles)
        return found

    def drawn(self, count: int, draw: torch.Generator) -> Tensor:
        """Draw inputs uniformly from the domain, shape (count, attributes), int64 levels."""
        random = torch.rand(count, len(self.attributes), generator=draw)
        return (random * self.counts).long().minimum(self.counts - 1)

    def numbered(self, start: int, stop: int) -> Tensor:
        """Return the inputs with these numbers below `size`, first variant; shape (stop - start, attributes)."""
        numbers = torch.arange(start, stop)
        levels = torch.zeros(len(numbers), len(self.attributes), dtype=torch.int64)
        for at, attribute in enumerate(self.attributes):
            if at not in self.protected:
                levels[:, at] = numbers % len(attribute.values)
                numbers = numbers // len(attribute.values)
        return levels

    def moved(self, levels: Tensor, chosen: Tensor, signs: Tensor) -> Tensor:
        """Move one attribute of each input by one step; at the end of its range, in the other direction.

        Args:
            levels: shape (n, attributes).
            chosen: index of the attribute to move, shape (n, 1).
            signs: 1 or -1, shape (n, 1).
        """
        there = levels.gather(1, chosen) + signs
        outside = (there < 0) | (there >= self.counts[chosen])
        moved = levels.scatter_add(1, chosen, torch.where(outside, -signs, signs))
        return moved.clamp_min(0).minimum(self.counts - 1)

    def moved_anywhere(self, levels: Tensor, chosen: Tensor, draw: torch.Generator) -> Tensor:
        """Move one attribute of each input to any other level; shapes as of `moved`."""
        others = self.counts[chosen] - 1
        steps = 1 + (torch.rand(chosen.shape, generator=draw) * others).long().minimum(others - 1)
        there = (levels.gather(1, chosen) + steps) % self.counts[chosen]
        return levels.scatter(1, chosen, there)

    def variant_of(self, levels: Tensor) -> Tensor:
        """Return the index in `variants` of each input, shape (n,)."""
        index = torch.zeros(len(levels), dtype=torch.int64)
        for at in self.protected:
            index = index * len(self.attributes[at].values) + levels[:, at]
        return index

    def with_variant(self, levels: Tensor, variant: Tensor) -> Tensor:
        """Return the inputs with the protected attributes of other variants, shape (n, attributes)."""
        changed = levels.clone()
        changed[:, list(self.protected)] = self.variants[variant]
        return changed


def attribute_of(name: str, cells: Sequence[Any], stated: Any = None) -> Attribute:
    """Return the possible values of a column, given or derived from its content.

    Texts are numbered in their order. Integers with a range of at most 100 may have any value in it; other numbers
    those that occur, if there are at most 100, otherwise 100 equal steps of their range.

    Args:
        name: of the column.
        cells: its content, without empty cells.
        stated: from a file of domains: a list of values, or a mapping of low, high and step.

    Raises:
        InputError: the domain is invalid, or there are too many different strings.
    """
    if stated is not None:
        return _stated(name, stated)
    try:
        numbers = np.unique(np.asarray(cells, np.float64))
    except (TypeError, ValueError):
        texts = tuple(sorted({str(cell) for cell in cells}))
        if len(texts) > MOST_VALUES:
            raise InputError(
                f"column {name!r} contains {len(texts):,} different strings, more than {MOST_VALUES:,}; remove it if it "
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
    """Read the domains of columns from a TOML file.

    Raises:
        InputError: it cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: invalid TOML: {error}") from error


def _stated(name: str, stated: Any) -> Attribute:
    if isinstance(stated, list) and stated:
        if all(isinstance(value, str) for value in stated) and len(set(stated)) == len(stated):
            return Attribute(name, tuple(map(float, range(len(stated)))), tuple(stated))
        if all(_is_number(value) for value in stated):
            return Attribute(name, tuple(sorted({float(value) for value in stated})))
    if isinstance(stated, dict) and {"low", "high"} <= set(stated) <= {"low", "high", "step"}:
        low, high, step = stated["low"], stated["high"], stated.get("step", 1)
        if all(map(_is_number, (low, high, step))) and high > low and step > 0:
            if (high - low) / step > MOST_VALUES:
                raise InputError(
                    f"domain of {name!r} has more than {MOST_VALUES:,} values; widen its step"
                )
            return Attribute(
                name, tuple(low + step * n for n in range(round((high - low) // step) + 1))
            )
    raise InputError(
        f"domain of {name!r}: expected a list of strings or numbers, or {{ low = 17, high = 90, step = 1 }}, "
        f"not {str(stated)[:60]}"
    )


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))
    )
