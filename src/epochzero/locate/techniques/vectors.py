"""The vector space model that BugLocator and BLIA share, as arrays.

J. Zhou, H. Zhang, D. Lo: "Where Should the Bugs Be Fixed?", ICSE 2012: a word's weight
is ``(log f + 1) * log(N / n)``, two texts are compared by the cosine of their vectors, and a file's
length boosts it.

What depends on a corpus alone (the lengths of its vectors, its past reports) is made once for each
corpus, by `vectors_of`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from epochzero.code import Bag
from epochzero.code.words import words
from epochzero.locate.index import Floats

if TYPE_CHECKING:
    from epochzero.code import Parsed
    from epochzero.locate.corpus import Corpus
    from epochzero.locate.index import Index
    from epochzero.locate.query import Query
    from epochzero.locate.report import PastReport


Hashes: TypeAlias = NDArray[np.uint32]
Ints: TypeAlias = NDArray[np.int64]

NAMES: Mapping[str, frozenset[str]] = {
    "class": frozenset({"class"}),
    "method": frozenset({"function", "method"}),
}
"""The fields with names of units, and the kinds of units; the index has the other fields."""


# -- Formulas ----------------------------------------------------------------------------------


def asked(query: Query) -> Floats:
    """Frequency of each term of a query in its summary and in its description, (terms, 2)."""
    summary, everything = query.words["summary"], query.words["all"]
    counts = [[summary[term], everything[term] - summary[term]] for term in query.terms]
    return np.array(counts, np.float32).reshape(-1, 2)


def log_frequency(counts: Floats) -> Floats:
    """``log f + 1`` of each count, 0 for what does not occur (Zhou et al.)."""
    weights = np.zeros_like(counts)
    held = counts > 0
    weights[held] = np.log(counts[held]) + 1
    return weights


def cosine(counts: Floats, lengths: Floats, queries: Floats, idf: Floats) -> Floats:
    """The cosine of each document with each query (Zhou et al.).

    Args:
        counts: of each term in each document, (documents, terms).
        lengths: Euclidean, of the documents' whole vectors, (documents,).
        queries: counts of each term in each query, (terms, queries).
        idf: of each term, (terms,).

    Returns:
        Cosines, 0 where either vector is empty, (documents, queries).
    """
    weights = log_frequency(queries) * idf[:, None]
    products = log_frequency(counts) @ (weights * idf[:, None])
    both = lengths[:, None] * np.linalg.norm(weights, axis=0)
    return np.asarray(products / np.where(both > 0, both, 1), np.float32)


def length_boost(words: Floats) -> Floats:
    """``1 / (1 + exp(-N(words)))`` with ``N`` as in `scaled`: longer files are likelier to hold a
    bug (Zhou et al.).
    """
    return np.asarray(1 / (1 + np.exp(-scaled(words))), np.float32)


def scaled(scores: Floats) -> Floats:
    """Scores moved and stretched to 0..1; all 0 where none differ."""
    if not len(scores):
        return scores
    low, high = float(scores.min()), float(scores.max())
    if high <= low:
        return np.zeros_like(scores)
    return np.asarray((scores - low) / (high - low), np.float32)


# -- Documents ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Idf:
    """``log(N / n)`` of words, where ``n`` of ``N`` documents hold a word (Zhou et al., Section
    III).

    Attributes:
        vocabulary: hashes of the words: sorted, (words,).
        values: of each, (words,).
    """

    vocabulary: Hashes
    values: Floats

    def of(self, hashes: Hashes) -> Floats:
        """The values of some words; 0 for those that no document holds."""
        return np.append(self.values, np.float32(0))[_places(self.vocabulary, hashes)]


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """Which documents hold a word, and how often.

    Attributes:
        vocabulary: hashes of all words: sorted, (words,).
        bounds: the postings of word ``w`` are ``bounds[w]:bounds[w + 1]``, (words + 1,).
        document: of each posting, (postings,).
        count: how often the word occurs there, (postings,).
        lengths: words in each document, repetitions included, (documents,).
    """

    vocabulary: Hashes
    bounds: Ints
    document: Ints
    count: Floats
    lengths: Floats

    @classmethod
    def of(cls, bags: Sequence[Bag]) -> Postings:
        """The postings of documents that are bags of words."""
        held = np.concatenate([np.zeros(0, np.uint32), *(bag.hashes for bag in bags)])
        count = np.concatenate([np.zeros(0, np.uint16), *(bag.counts for bag in bags)])
        document = np.repeat(np.arange(len(bags)), [len(bag) for bag in bags])
        order = np.argsort(held, kind="stable")
        vocabulary, often = np.unique(held, return_counts=True)
        return cls(
            vocabulary,
            np.concatenate([np.zeros(1, np.int64), np.cumsum(often)]),
            document[order],
            count[order].astype(np.float32),
            np.array([bag.total for bag in bags], np.float32),
        )

    def idf(self) -> Idf:
        """The rarity of each word."""
        values = np.log(len(self.lengths) / np.diff(self.bounds))
        return Idf(self.vocabulary, values.astype(np.float32))

    def norms(self, idf: Idf) -> Floats:
        """The Euclidean length of each document's vector, (documents,)."""
        rarity = np.repeat(idf.of(self.vocabulary), np.diff(self.bounds))
        squares = (log_frequency(self.count) * rarity) ** 2
        return np.sqrt(np.bincount(self.document, squares, len(self.lengths))).astype(np.float32)

    def counts(self, hashes: Hashes) -> Floats:
        """How often some words, each given once, occur in each document, (documents, words)."""
        places = _places(self.vocabulary, hashes)
        known = np.flatnonzero(places < len(self.vocabulary))
        begin, end = self.bounds[places[known]], self.bounds[places[known] + 1]
        column = np.repeat(known, end - begin)
        # The postings of one word after those of another, without a loop over the words.
        before = np.cumsum(end - begin) - (end - begin)
        entries = np.arange(len(column)) + np.repeat(begin - before, end - begin)
        found = np.zeros((len(self.lengths), len(hashes)), np.float32)
        found[self.document[entries], column] = self.count[entries]
        return found


def _places(vocabulary: Hashes, hashes: Hashes) -> Ints:
    """The number of each word; for one that is not in the vocabulary how many words that has."""
    places = np.searchsorted(vocabulary, hashes)
    known = places < len(vocabulary)
    known[known] = vocabulary[places[known]] == hashes[known]
    return np.where(known, places, len(vocabulary))


class PastReports:
    """Reports that were closed before, with the searched files that they led to."""

    def __init__(self, reports: Sequence[PastReport], number: Mapping[str, int]) -> None:
        texts = [f"{past.report.title}\n{past.report.text}" for past in reports]
        self._postings = Postings.of([Bag.of(words(text)) for text in texts])
        self._idf = self._postings.idf()
        self._norms = self._postings.norms(self._idf)
        fixed = [{number[path] for path in past.fixed if path in number} for past in reports]
        sizes = np.array([len(files) for files in fixed], np.int64)
        self._files = len(number)
        self._file = np.array([file for files in fixed for file in files], np.int64)
        self._report = np.repeat(np.arange(len(reports)), sizes)
        self._share = 1 / np.repeat(sizes, sizes)

    def similarity(self, query: Query) -> Floats:
        """``SimiScore`` (Zhou et al.): for each file the sum over the reports that
        it was changed for of their cosine with the query, each divided by the number of files
        that were changed for it, (documents,).
        """
        counts = self._postings.counts(query.hashes)
        asks = asked(query).sum(axis=1, keepdims=True)
        alike = cosine(counts, self._norms, asks, self._idf.of(query.hashes))[:, 0]
        shares = alike[self._report] * self._share
        return np.bincount(self._file, shares, self._files).astype(np.float32)


class Vectors:
    """Data of a corpus that the techniques need in addition to its index, computed on first use.

    Attributes:
        idf: of the words of whole files.
    """

    def __init__(
        self,
        index: Index,
        parsed: Sequence[Parsed],
        past: Sequence[PastReport],
        number: Mapping[str, int],
    ) -> None:
        self._index = index
        self._parsed = parsed
        self._past = past
        self._number = number
        vocabulary, often = index.frequencies()
        self.idf = Idf(vocabulary, np.log(index.documents / often).astype(np.float32))
        self._norms: dict[str, Floats] = {}

    @cached_property
    def names(self) -> Mapping[str, Postings]:
        """The words in names of units, by the fields of `NAMES`."""
        return {
            field: Postings.of([_names(parsed, kinds) for parsed in self._parsed])
            for field, kinds in NAMES.items()
        }

    @cached_property
    def past(self) -> PastReports:
        """The reports closed before."""
        return PastReports(self._past, self._number)

    def norms(self, field: str) -> Floats:
        """The Euclidean length of each file's vector of one field, weighed by `idf`, (documents,).

        Args:
            field: one of `NAMES` or of `epochzero.code.FIELDS`.
        """
        if field not in self._norms:
            self._norms[field] = (
                self.names[field].norms(self.idf) if field in NAMES else self._lengths(field)
            )
        return self._norms[field]

    def _lengths(self, field: str) -> Floats:
        squares = np.zeros(self._index.documents)
        for document, hashes, counts in self._index.entries(field):
            weights = log_frequency(counts) * self.idf.of(hashes)
            squares += np.bincount(document, weights**2, len(squares))
        return np.sqrt(squares).astype(np.float32)


def _names(parsed: Parsed, kinds: frozenset[str]) -> Bag:
    return Bag.of(words(" ".join(unit.name for unit in parsed.units if unit.kind in kinds)))


_KEPT: WeakKeyDictionary[Corpus, Vectors] = WeakKeyDictionary()


def vectors_of(corpus: Corpus) -> Vectors:
    """The vectors of a corpus; they live as long as it does."""
    found = _KEPT.get(corpus)
    if found is None:
        found = _KEPT[corpus] = Vectors(corpus.index, corpus.parsed, corpus.past, corpus.number)
    return found
