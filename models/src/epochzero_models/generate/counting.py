"""Counts the solutions of clauses, and draws one with exactly the same probability as each other one.

The variables are decided in their order. What the rest depends on is which of the clauses that have begun are still
unsatisfied; decisions that leave the same ones lead to the same node of a decision diagram (Huang and Darwiche, "The
Language of Search", JAIR 29, 2007). The features of a tree have few such sets if each is followed by those below it.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from epochzero_models.generate.feature_model import Clause

_State = frozenset[int]
"""Numbers of the unsatisfied clauses among those that have begun."""
_Layer = dict[_State, tuple[_State | None, _State | None]]


@dataclass(frozen=True, eq=False, slots=True)
class _Node:
    """A set of solutions of the remaining variables.

    Attributes:
        counts: number of solutions by size, the number of size s in the bits from s times `Solutions.width`.
        low, high: solutions in which the next variable is false or true; None if there are none.
    """

    counts: int
    low: _Node | None
    high: _Node | None


class Solutions:
    """All solutions of clauses, by size: the number of sized variables that are true.

    Args:
        clauses: numbers of variables from 1, negative if the variable must be false; at least one must hold.
        variables: number of variables.
        sized: those that the size counts.
    """

    def __init__(self, clauses: Sequence[Clause], variables: int, sized: Collection[int]) -> None:
        self._sized = frozenset(sized)
        layers = _layers(clauses, variables)
        all_counts = _root(layers, frozenset(), 0)
        self._width = all_counts.counts.bit_length() + 1 if all_counts else 1
        self._root = _root(layers, self._sized, self._width)

    def count(self, size: int) -> int:
        """Return the number of solutions of a size."""
        return self._count(self._root, size)

    def draw(self, size: int, draws: random.Random) -> list[int]:
        """Return the true variables of a solution, in order; each solution of the size is equally likely.

        Raises:
            ValueError: there is none.
        """
        node, rest = self._root, draws.randrange(self.count(size))
        true: list[int] = []
        number = 0
        while node and (node.low or node.high):
            number += 1
            below = self._count(node.low, size)
            if rest < below:
                node = node.low
            else:
                node, rest = node.high, rest - below
                true.append(number)
                size -= number in self._sized
        return true

    def _count(self, node: _Node | None, size: int) -> int:
        if node is None or size < 0:
            return 0
        return (node.counts >> size * self._width) & ((1 << self._width) - 1)


def _layers(clauses: Sequence[Clause], variables: int) -> list[_Layer]:
    """Return for each variable the states before it, with those after it if it is false or true."""
    of: list[list[tuple[int, int]]] = [[] for _ in range(variables + 1)]
    for number, clause in enumerate(clauses):
        for literal in clause:
            of[abs(literal)].append((number, literal))
    first = [min(map(abs, clause)) for clause in clauses]
    last = [max(map(abs, clause)) for clause in clauses]

    def after(state: _State, variable: int, value: bool) -> _State | None:
        unsatisfied = set(state)
        for number, literal in of[variable]:
            if number not in state and first[number] != variable:
                continue
            if (literal > 0) == value:
                unsatisfied.discard(number)
            elif last[number] == variable:
                return None
            else:
                unsatisfied.add(number)
        return frozenset(unsatisfied)

    layers: list[_Layer] = []
    states = {frozenset[int]()}
    for variable in range(1, variables + 1):
        layer = {s: (after(s, variable, False), after(s, variable, True)) for s in states}
        layers.append(layer)
        states = {state for pair in layer.values() for state in pair if state is not None}
    return layers


def _root(layers: Sequence[_Layer], sized: Collection[int], width: int) -> _Node | None:
    nodes: dict[_State | None, _Node] = {frozenset(): _Node(1, None, None)}
    for variable, layer in reversed(list(enumerate(layers, 1))):
        shift = width if variable in sized else 0
        above: dict[_State | None, _Node] = {}
        for state, pair in layer.items():
            low, high = (nodes.get(each) for each in pair)
            counts = (low.counts if low else 0) + (high.counts << shift if high else 0)
            if counts:
                above[state] = _Node(counts, low, high)
        nodes = above
    return nodes.get(frozenset())
