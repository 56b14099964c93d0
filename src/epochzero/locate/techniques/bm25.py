"""BM25 over the whole text of files and the words of their paths: the plain baseline.

S. Robertson, H. Zaragoza: "The Probabilistic Relevance Framework: BM25 and Beyond", Foundations and
Trends in Information Retrieval 3(4), 2009. Parameters are Lucene's; a repeated word of the query
counts with the logarithm of its frequency there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epochzero.locate.corpus import Corpus
from epochzero.locate.index import K1, B, Floats, bm25
from epochzero.locate.query import PARTS, Query
from epochzero.locate.techniques.base import Method


@dataclass(frozen=True, slots=True)
class BM25:
    """The baseline; ``k1`` and ``b`` as usual."""

    k1: float = K1
    b: float = B
    name: str = "bm25"

    def scores(self, query: Query, corpus: Corpus) -> Floats:
        """BM25 of the title and text against each file."""
        found = corpus.find(query)
        counts = found.fields["whole"] + corpus.path_counts(query)
        lengths = found.lengths["whole"] + corpus.path_lengths
        weights = query.weights[:, [PARTS.index("all")]]
        return np.asarray(bm25(counts, lengths, weights, self.k1, self.b)[:, 0], np.float32)


METHOD = Method("bm25", BM25)
