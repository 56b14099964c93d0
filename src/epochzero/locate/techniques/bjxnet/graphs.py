"""What the network of bjXnet reads: reports and code property graphs as numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochzero.code.graph import CodeGraph
from epochzero.code.words import hashes, words
from epochzero.locate.query import Query

MOST_WORDS = 300
"""Words of a report; the rest is mostly a log."""
BUCKETS = 4096
"""Rows of the embedding table; words share them by their hash."""


class FileGraph(NamedTuple):
    """A file's code property graph as numbers.

    Attributes:
        words: rows of the embedding table, those of one node after those of another, (words,).
        bounds: where each node's words begin, (nodes,).
        edges: kind, from, to; kinds are those of `epochzero.code.graph.CodeGraph` in its order,
            (edges, 3).
    """

    words: NDArray[np.uint16]
    bounds: NDArray[np.uint32]
    edges: NDArray[np.uint16]


def report_words(query: Query) -> NDArray[np.uint16]:
    """The rows of the embedding table for the first words of a report, in their order."""
    return _rows(words(query.texts["all"])[:MOST_WORDS])


def numbered(graph: CodeGraph) -> FileGraph:
    """A graph as the network takes it. A node's type is one of its words."""
    own = [[f"<{node.type}>", *words(" ".join(node.names))] for node in graph.nodes]
    sizes = [len(node_words) for node_words in own]
    kinds = (graph.syntax, graph.flow, graph.data)
    edges = [np.insert(pairs, 0, kind, axis=1) for kind, pairs in enumerate(kinds)]
    return FileGraph(
        _rows(word for node_words in own for word in node_words),
        (np.cumsum(sizes) - sizes).astype(np.uint32),
        np.concatenate(edges).astype(np.uint16),
    )


def _rows(found: Iterable[str]) -> NDArray[np.uint16]:
    rows: NDArray[np.uint16] = (hashes(found) % BUCKETS).astype(np.uint16)
    return rows
