"""Named numbers for each file and query, which the learned ranking combines.

A group of features is one module; each works on the `Context` and returns columns by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter

import numpy as np

from epochzero.locate.corpus import Corpus
from epochzero.locate.features.changes import changes
from epochzero.locate.features.context import Context, ranks
from epochzero.locate.features.graph import graph
from epochzero.locate.features.lexical import lexical
from epochzero.locate.features.literature import literature
from epochzero.locate.features.messages import messages
from epochzero.locate.features.names import names
from epochzero.locate.features.shape import shape
from epochzero.locate.index import Columns, Floats
from epochzero.locate.query import Query

GROUPS: Mapping[str, Callable[[Context], Columns]] = {
    "lexical": lexical,
    "mentions": attrgetter("mentions"),
    "names": names,
    "messages": messages,
    "shape": shape,
    "changes": changes,
    "graph": graph,
    "literature": literature,
}
"""The groups, in the order of their columns."""

RANKED = (
    "bm25_whole_all",
    "bm25_whole_summary",
    "bm25_card_all",
    "bm25_card_summary",
    "bm25_path_all",
    "unit_best_all",
    "said_all",
    "similar_commits",
    "guess",
    "walk",
    "bluir",
    "blia",
)
"""Columns whose rank within the corpus is a feature too."""
STANDARD = ("guess", "bm25_card_summary", "bm25_whole_all")
"""Columns that also come as their distance from the mean, in standard deviations."""


def _opened(query: Query, corpus: Corpus) -> float:
    """When the report was opened; if that is unknown, the time of the latest known change."""
    if query.report.opened is not None:
        return query.report.opened
    changes = corpus.history.changes if corpus.history else ()
    return float(changes[0].time) if changes else 0.0


def features_of(query: Query, corpus: Corpus) -> tuple[tuple[str, ...], Floats]:
    """All features.

    Returns:
        The names of the columns, and the values, (files, columns).
    """
    context = Context(query, corpus, _opened(query, corpus))
    columns: Columns = {}
    for group in GROUPS.values():
        columns |= group(context)
    for name in RANKED:
        columns[f"rank_{name}"] = np.log1p(ranks(columns[name]))
    for name in STANDARD:
        values = columns[name]
        columns[f"standard_{name}"] = (values - values.mean()) / (values.std() + 1e-6)
    return tuple(columns), np.stack([np.asarray(c, np.float32) for c in columns.values()], axis=1)
