"""Multi-label classifiers, loaded from numbers that a training script has written.

Each predicts as scikit-learn's with the same settings: `KNeighborsClassifier`, `DecisionTreeClassifier` and
`RandomForestClassifier`; a decision tree is a forest of one. Features are integers from 0 to `SCALE`.
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
    """Predicts the labels of the majority of the nearest examples.

    Attributes:
        examples: (examples, features).
        labels: 0 or 1, (examples, labels).
        count: number of neighbors.
    """

    examples: Array
    labels: Array
    count: int

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Neighbors:
        """Load from ``examples``, ``labels`` and ``count``."""
        return cls(
            np.array(stored["examples"], float), np.array(stored["labels"], float), stored["count"]
        )

    def predict(self, values: Array) -> Array:
        """Return 1 for each predicted label, (labels,)."""
        distances = ((self.examples - values) ** 2).sum(axis=1)
        nearest = np.argsort(distances, kind="stable")[: self.count]
        return np.asarray(self.labels[nearest].mean(axis=0) > 0.5, float)


@dataclass(frozen=True, slots=True)
class Forest:
    """Predicts labels by the average of its trees."""

    trees: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, stored: Sequence[Mapping[str, Any]]) -> Forest:
        """Load trees, each with ``feature`` and ``bound`` of its nodes (-1 for a leaf; values up to the bound lead to
        the next node, others to ``other``) and the ``share`` of each label, as a fraction of `SCALE`.
        """
        return cls(tuple(stored))

    def predict(self, values: Array) -> Array:
        """Return 1 for each predicted label, (labels,)."""
        shares = np.mean([_share(tree, values) for tree in self.trees], axis=0)
        return np.asarray(shares > 0.5 * SCALE, float)


def _share(tree: Mapping[str, Any], values: Array) -> Sequence[int]:
    node = 0
    while (feature := tree["feature"][node]) != _LEAF:
        smaller = values[feature] <= tree["bound"][node]
        node = node + 1 if smaller else tree["other"][node]
    shares: Sequence[int] = tree["share"][node]
    return shares
