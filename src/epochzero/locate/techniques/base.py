"""What every technique is: a way to score the files of a corpus for a query, and how it is chosen."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from epochzero.locate.corpus import Corpus
from epochzero.locate.index import Floats
from epochzero.locate.query import Query


class Technique(Protocol):
    """A localization technique.

    Attributes:
        name: for selection on the command line.
    """

    @property
    def name(self) -> str: ...

    def scores(self, query: Query, corpus: Corpus) -> Floats:
        """How likely each file holds the bug; higher is likelier, (documents,)."""
        ...


@dataclass(frozen=True, slots=True)
class Method:
    """A technique as users choose it. A module of this package that has one as ``METHOD`` is listed.

    Attributes:
        name: that users give.
        make: makes the technique, with the parameters of its paper or the model of the package.
        uses_history: whether it uses the history of changes; for the others it is not read.
        training_projects: returns ``owner+name`` in lower case of the projects whose bugs its model was trained on;
            it must not be measured on these. None for a technique without training.
        extra: the extra of the package that it requires; empty if none.
    """

    name: str
    make: Callable[[], Technique]
    uses_history: bool = False
    training_projects: Callable[[], Collection[str]] | None = None
    extra: str = ""
