"""BugLocator: a vector space model that prefers long files, and reports that were fixed before.

J. Zhou, H. Zhang, D. Lo: "Where Should the Bugs Be Fixed? More Accurate Information Retrieval-Based
Bug Localization Based on Bug Reports", ICSE 2012: the revised vector space model (rVSM),
the score by similar reports (SimiScore), and their combination. ``alpha`` is 0.2, as for two of the
paper's four projects; it is 0.3 for the other two.

What the paper leaves open: reports are compared by the document frequencies of the past reports, and
of the files that a past report led to only those that are still searched count. Words are those of
`epochzero.code.words`, which returns a compound identifier in addition to its parts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epochzero.locate.corpus import Corpus
from epochzero.locate.index import Floats
from epochzero.locate.query import Query
from epochzero.locate.techniques.base import Method
from epochzero.locate.techniques.vectors import (
    asked,
    cosine,
    length_boost,
    scaled,
    vectors_of,
)

ALPHA = 0.2
"""The weight of similar reports."""


@dataclass(frozen=True, slots=True)
class BugLocator:
    """BugLocator; ``alpha`` is the weight of similar reports against the files' own text."""

    alpha: float = ALPHA
    name: str = "buglocator"

    def scores(self, query: Query, corpus: Corpus) -> Floats:
        """``(1 - alpha) * N(rVSM) + alpha * N(SimiScore)``; without past reports rVSM's order."""
        own = scaled(rvsm(query, corpus))
        similar = scaled(vectors_of(corpus).past.similarity(query))
        return np.asarray((1 - self.alpha) * own + self.alpha * similar, np.float32)


def rvsm(query: Query, corpus: Corpus) -> Floats:
    """The revised vector space model (Zhou et al., ICSE 2012): the cosine of each file with the
    report, times the boost of its length, (documents,).
    """
    vectors = vectors_of(corpus)
    found = corpus.find(query)
    asks = asked(query).sum(axis=1, keepdims=True)
    idf = vectors.idf.of(query.hashes)
    alike = cosine(found.fields["whole"], vectors.norms("whole"), asks, idf)[:, 0]
    return alike * length_boost(found.lengths["whole"])


METHOD = Method("buglocator", BugLocator)
