"""BLUiR: structured retrieval, each part of a report against each part of a file.

R. K. Saha, M. Lease, S. Khurshid, D. E. Perry: "Improving Bug Localization Using Structured
Information Retrieval", ASE 2013, Section III. The retrieval model is the TF-IDF of the Indri toolkit
with ``k1 = 1.0``, ``b = 0.3``, ``k3 = 1000``: for each word

    idf^2 * k1 * f / (f + k1 * (1 - b + b * length / mean length)) * k3 * q / (q + k3)

where it occurs ``f`` times in the file's part and ``q`` times in the report's, and
``idf = log((N + 1) / (n + 0.5))``. The structured model sums this over the eight pairs of {class,
method, variable, comment} and {summary, description}, every statistic being that of the part.
This is the form without similar reports, as in most of the paper's evaluation and later studies.

The counterparts of the paper's parts of a Java file:

- class names: the names of classes; the name of the file is not among them, though in Java it is;
- method names: those of methods and functions;
- variable names: all identifiers in code (the field ``identifiers``), so also what is called, which
  the paper leaves out, and the names of units once more;
- comments: comments and docstrings.

String literals are searched in none of them, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epochzero.locate.corpus import Corpus
from epochzero.locate.index import Floats
from epochzero.locate.query import Query
from epochzero.locate.techniques.base import Method
from epochzero.locate.techniques.vectors import NAMES, asked, vectors_of

K1, B, K3 = 1.0, 0.3, 1000.0
"""The parameters of the paper; ``k3`` is the constant of Indri."""


@dataclass(frozen=True, slots=True)
class BLUiR:
    """BLUiR; ``k1`` and ``b`` as in BM25."""

    k1: float = K1
    b: float = B
    name: str = "bluir"

    def scores(self, query: Query, corpus: Corpus) -> Floats:
        """The sum over the eight pairs of parts, (documents,)."""
        found = corpus.find(query)
        names = vectors_of(corpus).names
        parts = [
            *((names[field].counts(query.hashes), names[field].lengths) for field in NAMES),
            *((found.fields[field], found.lengths[field]) for field in ("identifiers", "comments")),
        ]
        asks = asked(query)
        scores = [indri_tf_idf(counts, lengths, asks, self.k1, self.b) for counts, lengths in parts]
        return np.asarray(np.sum(scores, axis=(0, 2)), np.float32)


def indri_tf_idf(
    counts: Floats, lengths: Floats, queries: Floats, k1: float = K1, b: float = B
) -> Floats:
    """The TF-IDF of the Indri toolkit (Saha et al., Section III; its ``tfidf`` rule).

    Args:
        counts: of each word in each document, (documents, words).
        lengths: words in each document, (documents,).
        queries: counts of each word in each query, (words, queries).

    Returns:
        Scores, (documents, queries).
    """
    mean = float(lengths.mean()) if lengths.any() else 1.0
    soft = k1 * (1 - b + b * lengths / mean)
    often = k1 * counts / (counts + soft[:, None])
    idf = np.log((len(counts) + 1) / (np.count_nonzero(counts, axis=0) + 0.5))
    weights = (idf**2)[:, None] * (K3 * queries / (queries + K3))
    return np.asarray(often @ weights.astype(np.float32), np.float32)


METHOD = Method("bluir", BLUiR)
