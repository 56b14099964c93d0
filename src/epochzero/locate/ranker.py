"""The learned ranking: boosted regression trees over the features, trained to rank.

LambdaMART (Burges, "From RankNet to LambdaRank to LambdaMART: An Overview", MSR-TR-2010-82).
``ranker.json`` was made by ``bench/train_ranker.py``; it states on what it was trained and on what
never. The trees are evaluated with NumPy, so that nothing else is needed to use them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from epochzero.locate.features import features_of
from epochzero.locate.index import Floats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from epochzero.locate.corpus import Corpus
    from epochzero.locate.query import Query


LEARNED = "learned"
CANDIDATES = 200
"""So many files of the first guess are ranked by the trees; the rest stays behind them, in the order
of the guess."""


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Regression trees, all of the same number of nodes (smaller ones are padded with leaves).

    Attributes:
        names: of the features, in the order of the columns.
        feature: column that a node looks at, (trees, nodes); of a leaf 0.
        threshold: a value up to this goes left, (trees, nodes).
        left, right: the next node; of a leaf itself, (trees, nodes).
        value: what a leaf adds, (trees, nodes).
        depth: steps from a root to the farthest leaf.
    """

    names: tuple[str, ...]
    feature: NDArray[np.int16]
    threshold: Floats
    left: NDArray[np.int16]
    right: NDArray[np.int16]
    value: Floats
    depth: int

    @classmethod
    def of(cls, names: Sequence[str], trees: Sequence[Sequence[Sequence[float]]]) -> Trees:
        """Trees from lists of nodes, the root first: ``[feature, threshold, left, right]``, and of a
        leaf ``[value]``.
        """
        most = max(map(len, trees))
        table = np.zeros((len(trees), most, 5), np.float64)
        table[:, :, 2] = table[:, :, 3] = np.arange(most)
        depth = 0
        for number, nodes in enumerate(trees):
            for place, node in enumerate(nodes):
                if len(node) == 1:
                    table[number, place, 4] = node[0]
                else:
                    table[number, place, :4] = node
            depth = max(depth, _depth(nodes))
        return cls(
            tuple(names),
            table[:, :, 0].astype(np.int16),
            table[:, :, 1].astype(np.float32),
            table[:, :, 2].astype(np.int16),
            table[:, :, 3].astype(np.int16),
            table[:, :, 4].astype(np.float32),
            depth,
        )

    def predict(self, rows: Floats) -> Floats:
        """The sum of the trees for each row, (rows, features) -> (rows,)."""
        tree = np.arange(len(self.feature))
        row = np.arange(len(rows))[:, None]
        node = np.zeros((len(rows), len(tree)), np.int16)
        for _ in range(self.depth):
            goes_left = rows[row, self.feature[tree, node]] <= self.threshold[tree, node]
            node = np.where(goes_left, self.left[tree, node], self.right[tree, node])
        return np.asarray(self.value[tree, node].sum(axis=1), np.float32)


def _depth(nodes: Sequence[Sequence[float]], place: int = 0) -> int:
    if len(nodes[place]) == 1:
        return 0
    return 1 + max(_depth(nodes, int(nodes[place][side])) for side in (2, 3))


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """The learned ranking as a technique.

    Args:
        trees: those of the package when not given.
    """

    trees: Trees
    name: str = LEARNED

    def scores(self, query: Query, corpus: Corpus) -> Floats:
        """Scores of all files; those that the trees ranked come before the others."""
        names, table = features_of(query, corpus)
        return ranked(self.trees, names, table)


def ranked(trees: Trees, names: Sequence[str], table: Floats) -> Floats:
    """Scores by the trees of the likeliest files, and below them the first guess of the rest.

    Args:
        trees: the model.
        names: of the columns.
        table: features, (files, columns).
    """
    place = {name: number for number, name in enumerate(names)}
    guess = table[:, place["guess"]]
    first = np.argsort(-guess, kind="stable")[:CANDIDATES]
    columns = [place[name] for name in trees.names]
    predicted = trees.predict(table[first][:, columns])
    # The guess is at most 1, so that every file that the trees saw is ahead.
    scores = guess - 2.0 + float(predicted.min(initial=0.0))
    scores[first] = predicted
    return np.asarray(scores, np.float32)


@cache
def shipped() -> Learned:
    """The ranking with the model of the package."""
    return Learned(_trees(json.loads(_read())))


def _read() -> str:
    return files(__package__).joinpath("ranker.json").read_text(encoding="utf-8")


def _trees(raw: Mapping[str, Any]) -> Trees:
    return Trees.of(raw["features"], raw["trees"])
