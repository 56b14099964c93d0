"""The neighbours of a file: what it imports, what imports it, its folder.

Random walk with restart: Page et al., "The PageRank Citation Ranking", 1999, Section 2.6.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from epochzero.locate.features.context import Context, share
from epochzero.locate.index import Columns, Floats

RESTART = 0.6
STEPS = 15
SHARPNESS = 4.0
"""How strongly the walk starts at the likeliest files."""


def graph(context: Context) -> Columns:
    """Features of a file from the first scores of its neighbors."""
    corpus = context.corpus
    guess = share(context.guess)
    columns: Columns = {"guess": guess}
    for name, edges in (("imports", corpus.imports), ("imported_by", corpus.imported_by)):
        columns[f"{name}_best"] = _best(edges, guess)
        columns[f"{name}_mean"] = _mean(edges, guess)
        columns[f"{name}_count"] = np.log1p([len(e) for e in edges]).astype(np.float32)
        columns[f"{name}_mentioned"] = _best(edges, context.mentioned)
    columns["walk"] = share(_walk(corpus.imports, guess))
    return columns | _folder(context, guess)


def _best(edges: Sequence[Sequence[int]], scores: Floats) -> Floats:
    return np.array([scores[list(e)].max() if e else 0.0 for e in edges], np.float32)


def _mean(edges: Sequence[Sequence[int]], scores: Floats) -> Floats:
    return np.array([scores[list(e)].mean() if e else 0.0 for e in edges], np.float32)


def _walk(edges: Sequence[Sequence[int]], guess: Floats) -> Floats:
    """Where a walk over imports in both directions stays that starts at likely files."""
    n = len(guess)
    source = np.array([i for i, e in enumerate(edges) for _ in e], np.int64)
    target = np.array([j for e in edges for j in e], np.int64)
    source, target = np.concatenate([source, target]), np.concatenate([target, source])
    degree = np.maximum(1, np.bincount(source, minlength=n))
    start = np.exp(SHARPNESS * guess)
    start /= start.sum()
    here = start
    for _ in range(STEPS):
        moved = np.bincount(target, here[source] / degree[source], minlength=n)
        here = RESTART * start + (1 - RESTART) * moved
    return np.asarray(here, np.float32)


def _folder(context: Context, guess: Floats) -> Columns:
    """What the other files of the folder are thought to be, and the place among them."""
    best, mean, rank, size = (np.zeros(context.size, np.float32) for _ in range(4))
    for held in context.corpus.folders.values():
        numbers = np.array(held)
        own = guess[numbers]
        others = max(1, len(own) - 1)
        ordered = np.sort(own)[::-1]
        first, second = ordered[0], ordered[1] if len(own) > 1 else 0.0
        # The best of the others is the second for the best itself, unless several are the best.
        best[numbers] = np.where(own == first, second, first)
        mean[numbers] = (own.sum() - own) / others
        rank[numbers] = np.log1p(np.searchsorted(-ordered, -own, "left"))
        size[numbers] = np.log1p(len(own))
    return {"folder_best": best, "folder_mean": mean, "folder_rank": rank, "folder_size": size}
