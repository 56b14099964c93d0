"""Function evidence pooled upward: what the functions of a file say of the file."""

from __future__ import annotations

import numpy as np

from epochzero.locate.corpus import Corpus
from epochzero.locate.functions.context import FunctionContext, shares
from epochzero.locate.functions.table import Table
from epochzero.locate.index import Floats
from epochzero.locate.mentions import mentions
from epochzero.locate.query import Query

__all__ = ["function_evidence"]

FEW = 3


def function_evidence(query: Query, corpus: Corpus) -> dict[str, Floats]:
    """Columns for each file from the first guess of its functions, without the file's own score.

    Args:
        query: the report, taken apart.
        corpus: where to look.

    Returns:
        By name, each (documents,): ``function_best``, the best function's share of the best of all;
        ``function_few``, the mean of the best three's; ``function_mean``, that of all.
    """
    table = Table(corpus)
    names = ("function_best", "function_few", "function_mean")
    if not len(table):
        return {name: np.zeros(len(corpus), np.float32) for name in names}
    nothing = np.zeros(len(corpus), np.float32)
    context = FunctionContext(table, query, corpus, nothing, mentions(query, corpus))
    guess = shares(context.guess)
    order = np.lexsort((-guess, table.document))
    rank = np.arange(len(order)) - table.first[table.document[order]]

    def pooled(most: int) -> Floats:
        kept = order[rank < most]
        document = table.document[kept]
        total = np.bincount(document, guess[kept], minlength=len(corpus))
        return np.asarray(
            total / np.maximum(1, np.bincount(document, minlength=len(corpus))), np.float32
        )

    return dict(zip(names, map(pooled, (1, FEW, len(order))), strict=True))
