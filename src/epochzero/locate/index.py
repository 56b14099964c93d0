"""All bags of words of all documents, searched at once with arrays.

One pass over the index finds where the words of a query occur, in every field of every file and in
every function; what scores them (BM25, TF-IDF, a language model) works on the counts found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from epochzero.code import FIELDS, Parsed
from epochzero.code.words import ranges

Floats: TypeAlias = NDArray[np.float32]
Ints: TypeAlias = NDArray[np.int64]
Columns: TypeAlias = dict[str, Floats]
"""Numbers by their names, each with one for every file."""

K1, B = 1.5, 0.75
"""The usual parameters of BM25, those of Lucene's tests."""
_BUCKETS = 1 << 16
_BLOCK = 1 << 20
_BLOCK_DOCUMENTS = 1 << 10


@dataclass(frozen=True, slots=True, eq=False)
class SearchResult:
    """Where the words of a query occur.

    Attributes:
        fields: how often each word occurs in each field: by field name, (documents, words).
        lengths: words in each field of each document: by field name, (documents,).
        unit: of each occurrence in a unit, the unit's number in the whole index.
        word: of each occurrence in a unit, the word's number.
        count: how often it occurs there.
    """

    fields: dict[str, Floats]
    lengths: dict[str, Floats]
    unit: Ints
    word: Ints
    count: Floats


class Index:
    """The words of parsed files.

    Attributes:
        unit_document: for each unit the number of its document.
        unit_first: for each document the number of its first unit; one more bound at the end.
        unit_lengths: words in each unit.
    """

    def __init__(self, parsed: Sequence[Parsed]) -> None:
        tables = [p.table for p in parsed]
        self.documents = len(parsed)
        self._vocabulary = _concat([t.vocabulary for t in tables], np.uint32)
        starts = _starts([len(t.vocabulary) for t in tables])
        entries = _starts([len(t.columns) for t in tables])
        # The largest array by far: filled in place, in the narrowest integers that suffice.
        self._columns = np.empty(entries[-1], np.min_scalar_type(max(0, starts[-1] - 1)))
        for table, start, begin, end in zip(tables, starts, entries, entries[1:], strict=False):
            np.add(table.columns, start, out=self._columns[begin:end], casting="unsafe")
        self._counts = _concat([t.counts for t in tables], np.uint16)
        self._rows = np.append(
            _concat(
                [t.bounds[:-1] + e for t, e in zip(tables, entries[:-1], strict=True)], np.int64
            ),
            entries[-1],
        )
        totals = _concat([t.totals for t in tables], np.float32)
        rows = _starts([len(t.totals) for t in tables])
        document = np.repeat(np.arange(len(tables)), np.diff(rows))
        place = np.arange(len(totals)) - rows[document]
        is_unit = place >= len(FIELDS)
        self._row_document = document
        self._row_field = np.where(is_unit, -1, place)
        self._row_unit = np.cumsum(is_unit) - 1
        self._lengths = {
            field: totals[rows[:-1] + n] if len(tables) else totals
            for n, field in enumerate(FIELDS)
        }
        self.unit_document = document[is_unit]
        self.unit_lengths = totals[is_unit]
        self.unit_first = _starts([len(t.totals) - len(FIELDS) for t in tables])

    def find(self, hashes: NDArray[np.uint32]) -> SearchResult:
        """Where words occur.

        Args:
            hashes: of the words: sorted, each once.
        """
        word_of = self._word_of(hashes)
        entries = self._entries(word_of >= 0) if len(hashes) else _NONE
        row = np.searchsorted(self._rows, entries, "right") - 1
        word = word_of[self._columns[entries]].astype(np.int64)
        count = self._counts[entries].astype(np.float32)
        field = self._row_field[row]
        fields = {}
        for number, name in enumerate(FIELDS):
            here = field == number
            counts = np.zeros((self.documents, len(hashes)), np.float32)
            counts[self._row_document[row[here]], word[here]] = count[here]
            fields[name] = counts
        units = field < 0
        return SearchResult(
            fields, dict(self._lengths), self._row_unit[row[units]], word[units], count[units]
        )

    def _entries(self, wanted: NDArray[np.bool_]) -> Ints:
        """The entries whose word is wanted, block by block: NumPy widens the indices of a block."""
        blocks = range(0, len(self._columns), _BLOCK)
        found = [np.flatnonzero(wanted[self._columns[n : n + _BLOCK]]) + n for n in blocks]
        return _concat(found, np.int64)

    def entries(self, field: str) -> Iterator[tuple[Ints, NDArray[np.uint32], Floats]]:
        """The words of one field of all documents, a block of documents at a time, for the memory.

        Args:
            field: one of `epochzero.code.FIELDS`.

        Yields:
            Of each word of each document the document's number, the word's hash, and how often it occurs.
        """
        rows = np.flatnonzero(self._row_field == FIELDS.index(field))
        for begin in range(0, len(rows), _BLOCK_DOCUMENTS):
            entries, bounds = ranges(self._rows, rows[begin : begin + _BLOCK_DOCUMENTS])
            document = begin + np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
            counts = self._counts[entries].astype(np.float32)
            yield document, self._vocabulary[self._columns[entries]], counts

    def frequencies(self) -> tuple[NDArray[np.uint32], Ints]:
        """The hashes of all words, sorted, and how many documents hold each."""
        vocabulary, often = np.unique(self._vocabulary, return_counts=True)
        return vocabulary, often.astype(np.int64)

    def files_with(self, hashes: NDArray[np.uint32]) -> Ints:
        """How many documents hold each word, (words,).

        Args:
            hashes: of the words: sorted, each once.
        """
        return np.bincount(matches(self._vocabulary, hashes)[1], minlength=len(hashes))

    def _word_of(self, hashes: NDArray[np.uint32]) -> NDArray[np.int32]:
        """For each entry of the vocabulary, the number of the word; -1 for words that were not requested."""
        word_of = np.full(len(self._vocabulary), -1, np.int32)
        entry, word = matches(self._vocabulary, hashes)
        word_of[entry] = word
        return word_of


class Sets:
    """Which of many sets hold a hash: the names that files define or use, their phrases."""

    def __init__(self, sets: Sequence[NDArray[np.uint32]]) -> None:
        self._held = _concat(sets, np.uint32)
        self._first = _starts([len(held) for held in sets])
        self.documents = len(sets)

    def holders(self, hashes: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Which document holds which hash, (documents, hashes).

        Args:
            hashes: sorted, each once.
        """
        held = np.zeros((self.documents, len(hashes)), bool)
        entry, place = matches(self._held, hashes)
        held[np.searchsorted(self._first, entry, "right") - 1, place] = True
        return held


def matches(held: NDArray[np.uint32], hashes: NDArray[np.uint32]) -> tuple[Ints, Ints]:
    """The positions in ``held`` of the requested hashes, and the hash at each."""
    if not len(hashes):
        return _NONE, _NONE
    wanted = np.zeros(_BUCKETS, bool)
    wanted[hashes & (_BUCKETS - 1)] = True
    # A table of the low bits leaves few to be compared in full.
    likely = np.flatnonzero(wanted[held & (_BUCKETS - 1)])
    place = np.searchsorted(hashes, held[likely])
    place[place == len(hashes)] = 0
    same = hashes[place] == held[likely]
    return likely[same], place[same]


def bm25(counts: Floats, lengths: Floats, weights: Floats, k1: float = K1, b: float = B) -> Floats:
    """BM25 with Lucene's smoothing of the document frequency (Robertson and Zaragoza, "The
    Probabilistic Relevance Framework: BM25 and Beyond", 2009, Section 3; Lucene's BM25Similarity).

    Args:
        counts: of each word in each document, (documents, words).
        lengths: words in each document, (documents,).
        weights: of each word in each query, (words, queries).

    Returns:
        Scores, (documents, queries).
    """
    idf = inverse_document_frequency(counts)
    mean = float(lengths.mean()) if len(lengths) and lengths.any() else 1.0
    soft = counts + k1 * (1 - b + b * lengths / mean)[:, None]
    return np.asarray((counts / np.maximum(soft, 1e-9) * idf) @ weights, np.float32)


def inverse_document_frequency(counts: Floats) -> Floats:
    """Lucene's: ``log(1 + (n - df + 0.5) / (df + 0.5))`` of each word, (words,)."""
    n = len(counts)
    df = np.count_nonzero(counts, axis=0)
    return np.asarray(np.log1p((n - df + 0.5) / (df + 0.5)), np.float32)


_NONE = np.zeros(0, np.int64)


def _concat(arrays: Sequence[NDArray[Any]], kind: type[np.generic]) -> NDArray[Any]:
    return np.concatenate(arrays).astype(kind, copy=False) if arrays else np.zeros(0, kind)


def _starts(lengths: Sequence[int]) -> Ints:
    bounds = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=bounds[1:])
    return bounds
