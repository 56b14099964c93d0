"""Tensors of which only the sizes are known, and arithmetic with unknown sizes.

An unknown size is the product of a number and of unknown factors, so that a batch of unknown size stays the same
batch through ``x.view(x.size(0), -1)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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


class NotKnown(Exception):  # noqa: N818 -- no error: nothing can be told
    """The sizes depend on something unknown."""


class Misfit(Exception):  # noqa: N818 -- no error of this program
    """Sizes that PyTorch rejects.

    Attributes:
        said: PyTorch's message.
        why: explanation in a sentence.
        fix: what to do, in a sentence.
        error: class of the exception.
    """

    def __init__(
        self, message: str, why: str, fix: str, error: type[Exception] = RuntimeError
    ) -> None:
        super().__init__(message)
        self.message, self.why, self.fix, self.error = message, why, fix, error


def fresh() -> Size:
    """A completely unknown size."""
    return Size(factors=(object(),))


def _parts(size: Dim) -> tuple[int, tuple[object, ...]]:
    return (size.number, size.factors) if isinstance(size, Size) else (size, ())


def product(sizes: Iterable[Dim]) -> Dim:
    """The product of the sizes."""
    number = 1
    factors: list[object] = []
    for size in sizes:
        own, unknown = _parts(size)
        number *= own
        factors += unknown
    if not number or not factors:
        return number
    return Size(number=number, factors=tuple(sorted(factors, key=id)))


def quotient(whole: Dim, part: Dim) -> Dim | None:
    """Divide two sizes; None if there certainly is a remainder."""
    number, factors = _parts(whole)
    divisor, unknown = _parts(part)
    left = list(factors)
    for value in unknown:
        if value not in left:
            return fresh()
        left.remove(value)
    if not divisor:
        return fresh()
    if number % divisor:
        return fresh() if left else None
    return product([number // divisor, *(Size(factors=(each_value,)) for each_value in left)])


def differ(one: Dim, other: Dim) -> bool:
    """Whether two sizes certainly differ."""
    (number, factors), (second, others) = _parts(one), _parts(other)
    return number != second and factors == others


def shown(shape: Sequence[Dim]) -> str:
    """A shape as PyTorch prints it, with ``?`` for unknown sizes."""
    return f"[{', '.join(str(dim) if isinstance(dim, int) else '?' for dim in shape)}]"


def as_dim(value: object) -> Dim | None:
    """A size from a value of the program; None if it is not one."""
    if isinstance(value, Constant):
        number = value.value
        return number if type(number) is int else None
    return value if isinstance(value, Size) else None


def as_value(size: Dim) -> Value:
    """A size as a value of the program."""
    return Constant(size) if isinstance(size, int) else size
