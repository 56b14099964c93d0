"""The variable of a loop over known numbers, round by round.

A round that stands for all does not know its number, and yet ``epoch % 5 == 0`` surely holds in one
of ten rounds.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from epochzero.check.program.values import Anything, Constant

_MOST_ROUNDS = 1024
"""Of a longer loop only the first rounds and the last are looked at."""


FIRST_RANK = Anything("whether this process is the first")
"""A condition that one of the processes meets."""


@dataclass(frozen=True, slots=True)
class Counted(Anything):
    """A value that follows from the number of a round.

    Attributes:
        loop: whose rounds these are.
        rounds: the value in each, in order.
        whole: whether there are no other rounds.
        ranked: whether it also counts as false in all processes but the first.
    """

    loop: ast.AST | None = None
    rounds: tuple[Any, ...] = ()
    whole: bool = False
    ranked: bool = False

    @property
    def truth(self) -> bool | None:
        """Whether it counts as true in all rounds, or in none; None when that differs."""
        if not self.whole or self.ranked or self.comes(True) is self.comes(False):
            return None
        return self.comes(True)

    @property
    def first(self) -> bool | None:
        """Whether it counts as true in the first round."""
        return bool(self.rounds[0]) if self.rounds else None

    def comes(self, holds: bool) -> bool:
        """Whether it counts as true, or as false, in some round."""
        return any(bool(one) is holds for one in self.rounds)


def counted(loop: ast.AST, numbers: Sequence[int] | None) -> Counted:
    """The variable of a loop; of a range that is not known, None, no number is known."""
    reason = "a number that is counted"
    if not numbers:
        return Counted(reason, loop)
    if len(numbers) <= _MOST_ROUNDS:
        return Counted(reason, loop, tuple(numbers), True)
    return Counted(reason, loop, (*numbers[:_MOST_ROUNDS], numbers[-1]))


def computed(function: Callable[..., object] | None, *values: object) -> Counted | None:
    """A function of values some of which are counted in the same loop; None where it is not known."""
    found = [one for one in values if isinstance(one, Counted)]
    if function is None or not found or any(one.loop is not found[0].loop for one in found):
        return None
    if not all(isinstance(one, Constant | Counted) for one in values):
        return None
    size = len(found[0].rounds)
    columns = [
        one.rounds if isinstance(one, Counted) else (one.value,) * size
        for one in values
        if isinstance(one, Constant | Counted)
    ]
    try:
        rounds = tuple(function(*row) for row in zip(*columns, strict=True))
    except (TypeError, ValueError, ArithmeticError):
        return None
    return Counted(found[0].reason, found[0].loop, rounds, found[0].whole)


def chosen(stops: bool, values: Sequence[object]) -> Counted | None:
    """``a or b`` (``stops``) or ``a and b`` of counted values."""

    def choose(*row: object) -> object:
        return next((one for one in row if bool(one) is stops), row[-1])

    ranked = FIRST_RANK in values and not stops
    found = computed(choose, *(one for one in values if not (ranked and one == FIRST_RANK)))
    return replace(found, ranked=True) if found is not None and ranked else found


def leaves(loop: ast.AST | None) -> bool:
    """Whether a loop may end before its last round."""
    todo = [*getattr(loop, "body", ())]
    while todo:
        one = todo.pop()
        if isinstance(one, ast.Break | ast.Return):
            return True
        if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            todo += ast.iter_child_nodes(one)
    return False
