"""The variable of a loop over known numbers, by iteration.

An iteration that stands for all has no known number, and yet ``epoch % 5 == 0`` certainly holds in one of
ten iterations.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from epochzero.check.program.values import Anything, Constant

_MOST_ROUNDS = 1024
"""Number of iterations that are evaluated for a longer loop: the first ones and the last."""


FIRST_RANK = Anything("whether this process is the first")
"""A condition that one of the processes meets."""


@dataclass(frozen=True, slots=True)
class IterationValue(Anything):
    """A value that depends on the iteration.

    Attributes:
        loop: the loop.
        rounds: the value in each iteration, in order.
        whole: whether these are all iterations.
        ranked: whether it also is false in all processes but the first.
    """

    loop: ast.AST | None = None
    rounds: tuple[Any, ...] = ()
    whole: bool = False
    ranked: bool = False

    @property
    def truth(self) -> bool | None:
        """Whether it is true in all iterations (True) or in none (False); None if that differs."""
        if not self.whole or self.ranked or self.comes(True) is self.comes(False):
            return None
        return self.comes(True)

    @property
    def first(self) -> bool | None:
        """Whether it is true in the first iteration."""
        return bool(self.rounds[0]) if self.rounds else None

    def comes(self, holds: bool) -> bool:
        """Whether it has this truth value in some iteration."""
        return any(bool(value) is holds for value in self.rounds)


def counted(loop: ast.AST, numbers: Sequence[int] | None) -> IterationValue:
    """The variable of a loop over ``numbers``; None for an unknown range."""
    reason = "a number that is counted"
    if not numbers:
        return IterationValue(reason, loop)
    if len(numbers) <= _MOST_ROUNDS:
        return IterationValue(reason, loop, tuple(numbers), True)
    return IterationValue(reason, loop, (*numbers[:_MOST_ROUNDS], numbers[-1]))


def computed(function: Callable[..., object] | None, *values: object) -> IterationValue | None:
    """Apply a function to values, some of which are counted in the same loop; None if unknown."""
    found = [value for value in values if isinstance(value, IterationValue)]
    if function is None or not found or any(c.loop is not found[0].loop for c in found):
        return None
    if not all(isinstance(value, Constant | IterationValue) for value in values):
        return None
    size = len(found[0].rounds)
    columns = [
        value.rounds if isinstance(value, IterationValue) else (value.value,) * size
        for value in values
        if isinstance(value, Constant | IterationValue)
    ]
    try:
        rounds = tuple(function(*row) for row in zip(*columns, strict=True))
    except (TypeError, ValueError, ArithmeticError):
        return None
    return IterationValue(found[0].reason, found[0].loop, rounds, found[0].whole)


def chosen(stops: bool, values: Sequence[object]) -> IterationValue | None:
    """Evaluate ``a or b`` (``stops``) or ``a and b`` with counted values."""

    def choose(*row: object) -> object:
        return next((value for value in row if bool(value) is stops), row[-1])

    ranked = FIRST_RANK in values and not stops
    found = computed(choose, *(value for value in values if not (ranked and value == FIRST_RANK)))
    return replace(found, ranked=True) if found is not None and ranked else found


def leaves(loop: ast.AST | None) -> bool:
    """Whether a loop may end before its last iteration."""
    todo = [*getattr(loop, "body", ())]
    while todo:
        value = todo.pop()
        if isinstance(value, ast.Break | ast.Return):
            return True
        if not isinstance(
            value, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
        ):
            todo += ast.iter_child_nodes(value)
    return False
