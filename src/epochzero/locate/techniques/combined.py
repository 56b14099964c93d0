"""A sum of a few scores weighted by hand: no learning, so there is nothing to fit or to ship.

BM25 of the whole text, of the title alone, of the file's card (the words of its path, the head of its
docstring and the names that it defines) and of its best function, each divided by the largest, and
how surely the report names the file. The learned ranking starts from the same sum.
"""

from __future__ import annotations

from dataclasses import dataclass

from epochzero.locate.corpus import Corpus
from epochzero.locate.features.context import Context
from epochzero.locate.index import Floats
from epochzero.locate.query import Query
from epochzero.locate.techniques.base import Method

COMBINED = "combined"


@dataclass(frozen=True, slots=True)
class Combined:
    """The sum; `epochzero.locate.features.context.Context.guess` has the weights."""

    name: str = COMBINED

    def scores(self, query: Query, corpus: Corpus) -> Floats:
        """The sum for each file."""
        # No part of the sum depends on the time.
        return Context(query, corpus, opened=0.0).guess


METHOD = Method(COMBINED, Combined)
