"""What every technique is: a way to score the files of a corpus for a query."""

from __future__ import annotations

from typing import Protocol

from epochzero.locate.corpus import Corpus
from epochzero.locate.index import Floats
from epochzero.locate.query import Query


class Technique(Protocol):
    """A localization technique.

    Attributes:
        name: as it is chosen by.
    """

    @property
    def name(self) -> str: ...

    def scores(self, query: Query, corpus: Corpus) -> Floats:
        """How likely each file holds the bug; higher is likelier, (documents,)."""
        ...
