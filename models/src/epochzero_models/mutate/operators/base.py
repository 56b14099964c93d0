"""What an operator is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from epochzero_models.mutate.program import Edit, TrainingProgram

Places = Callable[[TrainingProgram], Iterator[Edit]]


@dataclass(frozen=True, slots=True)
class MutationOperator:
    """How a leaf of the taxonomy is injected into a program.

    Attributes:
        leaf: its name.
        change: a sentence that says what becomes of which text.
        places: the edits of a program that each bring it in.
    """

    leaf: str
    change: str
    places: Places


def injects(leaf: str) -> Callable[[Places], MutationOperator]:
    """Turn a function that yields edits into an operator; its docstring describes the change."""
    return lambda places: MutationOperator(leaf, str(places.__doc__), places)
