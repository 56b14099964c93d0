"""Tensors of which only the sizes are known, and arithmetic with unknown sizes.

An unknown size is the product of a number and of unknown factors, so that a batch of unknown size stays the same
batch through ``x.view(x.size(0), -1)``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from epochzero.check.program.values import Anything, Constant, Value


@dataclass(frozen=True, slots=True)
class Size(Anything):
    """An unknown size of an axis: an integer times unknown factors.

    Attributes:
        number: the known factor.
        factors: the unknown factors, each a distinct object.
    """

    reason: str = "the size of a tensor"
    number: int = 1
    factors: tuple[object, ...] = ()


Dim: TypeAlias = int | Size
Shape: TypeAlias = tuple[Dim, ...]


@dataclass(frozen=True, slots=True)
class Tensor(Anything):
    """A tensor of which only the shape is known.

    Attributes:
        shape: the sizes of its axes.
        is_last: whether these are only the last axes, and the preceding ones are unknown.
    """

    reason: str = "a tensor"
    shape: Shape = ()
    is_last: bool = False


class NotKnown(Exception):  # noqa: N818 -- no error: nothing is known
    """The sizes depend on something unknown."""


@dataclass
class Misfit(Exception):  # noqa: N818 -- no error of this program
    """Sizes that PyTorch rejects with a `RuntimeError`.

    Attributes:
        message: PyTorch's message.
        why: explanation in a sentence.
        fix: what to do, in a sentence.
    """

    message: str
    why: str
    fix: str


def fresh() -> Size:
    """A completely unknown size."""
    return Size(factors=(object(),))


def _parts(size: Dim) -> tuple[int, tuple[object, ...]]:
    return (size.number, size.factors) if isinstance(size, Size) else (size, ())


def _sized(number: int, factors: Iterable[object]) -> Dim:
    unknown = tuple(sorted(factors, key=id))
    return Size(number=number, factors=unknown) if number and unknown else number


def product(sizes: Iterable[Dim]) -> Dim:
    """The product of the sizes."""
    parts = [*map(_parts, sizes)]
    return _sized(math.prod(known for known, _ in parts), chain(*(unknown for _, unknown in parts)))


def quotient(whole: Dim, part: Dim) -> Dim | None:
    """Divide two sizes; None if there certainly is a remainder."""
    (number, factors), (divisor, unknown) = _parts(whole), _parts(part)
    left = Counter(factors)
    left.subtract(unknown)
    if not divisor or min(left.values(), default=0) < 0:
        return fresh()
    if number % divisor:
        return fresh() if left.total() else None
    return _sized(number // divisor, left.elements())


def differ(left: Dim, right: Dim) -> bool:
    """Whether two sizes certainly differ."""
    (number, factors), (second, others) = _parts(left), _parts(right)
    return number != second and factors == others


def number(size: Dim) -> str:
    """A size as PyTorch prints it, or ``?``."""
    return str(size) if isinstance(size, int) else "?"


def shown(shape: Sequence[Dim]) -> str:
    """A shape as PyTorch prints it, with ``?`` for unknown sizes."""
    return f"[{', '.join(map(number, shape))}]"


def as_dim(value: object) -> Dim:
    """A size from a value of the program; an unknown one if it is not one."""
    if isinstance(value, Constant) and type(value.value) is int:
        return value.value
    return value if isinstance(value, Size) else fresh()


def as_value(size: Dim) -> Value:
    """A size as a value of the program."""
    return Constant(size) if isinstance(size, int) else size
