"""The feature model: which features an architecture may combine.

`features.toml` has the tree and the constraints for one block k and one element i; `feature_model` instantiates them for
all blocks and elements and converts them to clauses (Batory, SPLC 2005).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from epochzero.errors import InputError

Product = frozenset[str]
"""The names of all features of an architecture."""
Clause = tuple[int, ...]
"""Numbers of features, negative for features that must be absent; at least one must hold."""

MOST_BLOCKS = 10
MOST_ELEMENTS = 10
_FILE = Path(__file__).with_name("features.toml")
_INDEX = re.compile(r"\[([ki])(\+1)?\]")


@dataclass(frozen=True, eq=False)
class FeatureModel:
    """Features and their constraints.

    Attributes:
        blocks: maximum number of blocks.
        elements: maximum number of elements per block.
        features: all names; a feature's number is its position, from 1.
        clauses: constraints.
    """

    blocks: int
    elements: int
    features: tuple[str, ...]
    clauses: tuple[Clause, ...]

    @property
    def cells(self) -> tuple[str, ...]:
        """The features that are cells."""
        return tuple(
            name for name in self.features if name.endswith("_Cell") and "Output" not in name
        )

    def numbers(self, features: Iterable[str]) -> list[int]:
        """Return the numbers of features.

        Raises:
            InputError: the model has no such feature.
        """
        known = _numbered(self.features)
        named = list(features)
        unknown = [name for name in named if name not in known]
        if unknown:
            raise InputError(
                f"the feature model of {self.blocks} blocks with {self.elements} elements has no "
                f"feature {unknown[0]!r}"
            )
        return [known[name] for name in named]

    def allows(self, product: Product) -> bool:
        """Whether a product satisfies all constraints."""
        known = _numbered(self.features)
        there = {known.get(name, 0) for name in product}
        return 0 not in there and all(
            any((literal > 0) == (abs(literal) in there) for literal in clause)
            for clause in self.clauses
        )


@cache
def feature_model(blocks: int, elements: int) -> FeatureModel:
    """Return the feature model for at most this many blocks with at most this many elements each.

    Raises:
        InputError: a number is below 1 or above 10.
    """
    if not (1 <= blocks <= MOST_BLOCKS and 1 <= elements <= MOST_ELEMENTS):
        raise InputError(
            f"{blocks} blocks of {elements} elements: 1 to {MOST_BLOCKS} blocks and 1 to "
            f"{MOST_ELEMENTS} elements can be generated"
        )
    definition = _definition()
    tree = _Tree(definition["feature"], blocks, elements)
    tree.grow("Architecture", {})
    clauses = [*tree.clauses]
    for constraint in definition["constraint"]:
        clauses += _constraint(constraint, tree, blocks, elements)
    return FeatureModel(blocks, elements, tuple(tree.features), tuple(dict.fromkeys(clauses)))


@cache
def _definition() -> Mapping[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


@cache
def _numbered(features: tuple[str, ...]) -> Mapping[str, int]:
    return {name: number for number, name in enumerate(features, 1)}


class _Tree:
    """The tree of features, instantiated from its root, and its clauses."""

    def __init__(self, definition: Mapping[str, Any], blocks: int, elements: int) -> None:
        self.definition = definition
        self.most = {"k": blocks, "i": elements}
        self.features: dict[str, int] = {"Architecture": 1}
        self.clauses: list[Clause] = [(1,)]

    def grow(self, template: str, indices: Mapping[str, int]) -> None:
        """Add all features below a feature, each followed by those below it: `counting` relies on this order."""
        children = self.definition.get(template, {})
        parent = self.features[_filled(template, indices)]
        for kind in ("mandatory", "optional", "one_of"):
            below = [
                row
                for child in children.get(kind, ())
                for row in self._unfolded(_below(template, child), indices)
            ]
            numbers: list[int] = []
            for name, at in below:
                numbers.append(self._added(_filled(name, at)))
                self.grow(name, at)
            self.clauses += [(-number, parent) for number in numbers]
            if kind == "mandatory":
                self.clauses += [(-parent, number) for number in numbers]
            elif kind == "one_of" and numbers:
                self.clauses += _exactly_one(parent, numbers)

    def _added(self, name: str) -> int:
        return self.features.setdefault(name, len(self.features) + 1)

    def _unfolded(
        self, template: str, indices: Mapping[str, int]
    ) -> Iterator[tuple[str, Mapping[str, int]]]:
        new = [index for index, _ in _INDEX.findall(template) if index not in indices]
        if not new:
            yield template, indices
            return
        for number in range(1, self.most[new[0]] + 1):
            yield template, {**indices, new[0]: number}


def _below(template: str, child: str) -> str:
    return child if template == "Architecture" else f"{template}_{child}"


def _filled(template: str, indices: Mapping[str, int]) -> str:
    return _INDEX.sub(lambda found: str(indices[found[1]] + bool(found[2])), template)


def _exactly_one(parent: int, numbers: list[int]) -> list[Clause]:
    pairs = [(-a, -b) for at, a in enumerate(numbers) for b in numbers[at + 1 :]]
    return [(-parent, *numbers), *pairs]


def _constraint(
    constraint: Mapping[str, Any], tree: _Tree, blocks: int, elements: int
) -> Iterator[Clause]:
    """Return its clause for each block and element that it names; none if it is always true."""
    named = "".join(str(constraint.get(part, "")) for part in ("if", "then", "never"))
    for k in range(1, blocks + 1 if "[k" in named else 2):
        for i in range(1, elements + 1 if "[i" in named else 2):
            filled = {
                part: tree.features.get(_filled(constraint[part], {"k": k, "i": i}))
                for part in ("if", "then", "never")
                if part in constraint
            }
            condition, consequence, forbidden = (
                filled.get(part) for part in ("if", "then", "never")
            )
            if condition is None or ("never" in constraint and forbidden is None):
                continue
            if constraint.get("last_block") and consequence is None and k == blocks:
                continue
            clause = [-condition]
            clause += [consequence] if consequence else []
            clause += [-forbidden] if forbidden else []
            yield tuple(clause)
