"""The functions and methods of a corpus, in arrays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from epochzero.code.words import IDENTIFIER, word_stream
from epochzero.locate.corpus import Corpus
from epochzero.locate.index import Floats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from epochzero.code import Unit


NO_ROWS = np.zeros(0, np.int64)


class FunctionTable:
    """The functions and methods of a corpus.

    Attributes:
        units: the functions, in the order of the files.
        document: for each the number of its file.
        place: for each its number among the units of its file.
        lengths: words in the lines of each.
        number: for each unit of the index its row here, -1 for classes.
        name_words: the hashes of the words of all qualified names, one after the other.
        name_lengths: words in each qualified name.
        by_name: the rows of each name.
        by_outer: the rows of what lies within each name: the methods of a class.
    """

    def __init__(self, corpus: Corpus) -> None:
        everything = [unit for parsed in corpus.parsed for unit in parsed.units]
        ranked = [n for n, unit in enumerate(everything) if unit.kind != "class"]
        rows = np.array(ranked, np.int64)
        index = corpus.index
        self._parsed = corpus.parsed
        self.units: tuple[Unit, ...] = tuple(everything[n] for n in ranked)
        self.document: NDArray[np.int64] = index.unit_document[rows]
        self.place: NDArray[np.int64] = rows - index.unit_first[self.document]
        self.lengths: Floats = index.unit_lengths[rows]
        self.number = np.full(len(everything), -1, np.int64)
        self.number[rows] = np.arange(len(rows))
        parts = [IDENTIFIER.findall(unit.qualified) for unit in self.units]
        self.by_name = _rows_of([[unit.name] for unit in self.units])
        self.by_outer = _rows_of([names[:-1] for names in parts])
        self.name_words, bounds = word_stream([name for names in parts for name in names])
        ends = bounds[np.cumsum([0, *map(len, parts)])]
        self.name_lengths: Floats = np.diff(ends).astype(np.float32)
        self._called: dict[int, Mapping[int, frozenset[str]]] = {}

    def __len__(self) -> int:
        return len(self.units)

    @cached_property
    def first(self) -> NDArray[np.int64]:
        """The first row of each file; one more bound at the end, (documents + 1,)."""
        return np.searchsorted(self.document, np.arange(len(self._parsed) + 1))

    def of_file(self, document: int) -> range:
        """The rows of a file's functions."""
        return range(int(self.first[document]), int(self.first[document + 1]))

    def called(self, row: int) -> frozenset[str]:
        """The names that a function calls, those of functions within it apart."""
        document = int(self.document[row])
        if document not in self._called:
            self._called[document] = self._calls(document)
        return self._called[document].get(int(self.place[row]), frozenset())

    def _calls(self, document: int) -> Mapping[int, frozenset[str]]:
        """The names called by each unit of a file."""
        parsed = self._parsed[document]
        found: defaultdict[int, set[str]] = defaultdict(set)
        for caller, name in zip(parsed.callers.tolist(), parsed.called, strict=True):
            found[caller].add(name)
        return {caller: frozenset(names) for caller, names in found.items()}


def _rows_of(names: Sequence[Sequence[str]]) -> Mapping[str, NDArray[np.int64]]:
    """The rows that contain each name."""
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for row, held in enumerate(names):
        for name in held:
            rows[name].append(row)
    return {name: np.array(held, np.int64) for name, held in rows.items()}
