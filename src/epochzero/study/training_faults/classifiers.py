"""Classifiers of several labels, read from numbers that a training script has written.

Each answers as scikit-learn's of the same settings would: `KNeighborsClassifier`, `DecisionTreeClassifier` and
`RandomForestClassifier`, of which a tree is the smallest. Features are whole numbers from 0 to `SCALE`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
SCALE = 1000
_LEAF = -1


@dataclass(frozen=True, slots=True)
class Neighbors:
    """The labels that most of the nearest examples have.

    Attributes:
        examples: (examples, features).
        labels: 0 or 1, (examples, labels).
        count: how many neighbors are asked.
    """

    examples: Array
    labels: Array
    count: int

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Neighbors:
        """From ``examples``, ``labels`` and ``count``."""
        return cls(
            np.array(stored["examples"], float), np.array(stored["labels"], float), stored["count"]
        )

    def predict(self, values: Array) -> Array:
        """1 for each label that is given, (labels,)."""
        distances = ((self.examples - values) ** 2).sum(axis=1)
        nearest = np.argsort(distances, kind="stable")[: self.count]
        return np.asarray(self.labels[nearest].mean(axis=0) > 0.5, float)


@dataclass(frozen=True, slots=True)
class Forest:
    """The labels that the trees give on average."""

    trees: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, stored: Sequence[Mapping[str, Any]]) -> Forest:
        """From trees, each with ``feature`` and ``bound`` of its nodes (-1 for a leaf; a smaller or equal
        value goes to the next node, any other to ``other``) and the ``share`` of each label, of `SCALE`.
        """
        return cls(tuple(stored))

    def predict(self, values: Array) -> Array:
        """1 for each label that is given, (labels,)."""
        shares = np.mean([_share(tree, values) for tree in self.trees], axis=0)
        return np.asarray(shares > 0.5 * SCALE, float)


def _share(tree: Mapping[str, Any], values: Array) -> Sequence[int]:
    node = 0
    while (feature := tree["feature"][node]) != _LEAF:
        smaller = values[feature] <= tree["bound"][node]
        node = node + 1 if smaller else tree["other"][node]
    shares: Sequence[int] = tree["share"][node]
    return shares
