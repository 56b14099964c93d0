"""How well the words of each part of a report fit each field of a file."""

from __future__ import annotations

import numpy as np

from epochzero.locate.features.context import ALL, SUMMARY, Context, share
from epochzero.locate.index import Columns, Floats, bm25
from epochzero.locate.query import PARTS

_PROSE_ONLY = frozenset({"imports"})
"""Fields in which the words of tracebacks and messages mean nothing."""
_BEST_UNITS = 3


def lexical(context: Context) -> Columns:
    """BM25 of each part against each field and against the functions of a file."""
    columns: Columns = {}
    for field, scores in context.field_scores.items():
        for number, part in enumerate(PARTS):
            if field in _PROSE_ONLY and part in ("traceback", "error"):
                continue
            columns[f"bm25_{field}_{part}"] = share(scores[:, number])
    columns |= _units(context) | _whole(context)
    return columns


def _units(context: Context) -> Columns:
    columns: Columns = {}
    for number, part in enumerate(PARTS):
        if part != "error":
            columns[f"unit_best_{part}"] = share(context.best_units[:, number])
    for number in (ALL, SUMMARY):
        columns[f"unit_top_{PARTS[number]}"] = share(_top(context, context.unit_scores[:, number]))
    return columns


def _top(context: Context, scores: Floats) -> Floats:
    """The sum of the best few scores of the units of each file."""
    document = context.corpus.index.unit_document
    order = np.lexsort((-scores, document))
    rank = np.arange(len(order)) - context.corpus.index.unit_first[document[order]]
    best = order[rank < _BEST_UNITS]
    return np.bincount(document[best], scores[best], minlength=context.size).astype(np.float32)


def _whole(context: Context) -> Columns:
    counts, lengths = context.counts("whole")
    weights = context.query.weights
    title = weights[:, SUMMARY] > 0
    raw = context.field_scores["whole"][:, ALL]
    covered = np.count_nonzero((counts > 0) & title, axis=1) / max(1, int(title.sum()))
    once = (weights[:, [ALL]] > 0).astype(np.float32)
    return {
        "whole_per_word": raw / (float(weights[:, ALL].sum()) + 1e-6),
        "title_covered": covered.astype(np.float32),
        "whole_once_short": share(bm25(counts, lengths, once, 1.2, 0.3)[:, 0]),
        "whole_long": share(bm25(counts, lengths, weights[:, [ALL]], 1.5, 1.0)[:, 0]),
    }
