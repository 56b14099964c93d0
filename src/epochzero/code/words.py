"""The words of code and prose, and bags of them.

An identifier counts as a whole and by its parts (``clipGradNorm`` gives ``clipgradnorm``, ``clip``,
``grad``, ``norm``); parts are stemmed. Words are stored as hashes that are the same on every
machine, so that files parsed at different times need no common vocabulary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import Stemmer

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
LONGEST = 100
"""Anything longer is encoded data, not a word."""
MEMO_SIZE = 1 << 17
"""Identifiers remembered before the memory is cleared: some tens of megabytes."""
HIGHEST_COUNT = (1 << 16) - 1

_KEYWORDS = """
and as assert async await break case catch class const continue def default del do elif else enum
except extern finally for from func function global goto if import in is lambda let new nonlocal not
or package pass private protected public raise return static struct switch template this throw
throws try typedef typename using var void volatile while with yield
"""
_COMMON = """
a about after again all also am an any are at be because been before being below between both but by
can cannot could did does doing done down during each few further had has have having he her here
hers him his how i into it its itself just me more most my no nor now of off on once only other our
out over own same self she should so some such than that the their them then there these they those
through to too under until up us very was we were what when where which who whom why will would you
your cls none null true false
"""
KEYWORDS = frozenset(_KEYWORDS.split())
"""Words that are reserved in the languages read here and never name anything."""
_STOP = KEYWORDS | frozenset(_COMMON.split())

_Kind = TypeVar("_Kind", np.uint32, np.uint64)

_stem: Callable[[str], str] = Stemmer.Stemmer("english").stemWord


def _words_of(identifier: str) -> tuple[str, ...]:
    """What one identifier adds: itself when it is compound, and its stemmed parts."""
    whole = identifier.lower()
    if len(identifier) > LONGEST or whole in _STOP:
        return ()
    pieces = _PART.findall(identifier) if identifier.isascii() else identifier.split("_")
    parts = [piece.lower() for piece in pieces if piece]
    found = [_stem(part) for part in parts if len(part) > 1 and part not in _STOP]
    return (whole, *found) if len(parts) > 1 else tuple(found)


def _hash(word: str) -> int:
    return int.from_bytes(
        blake2b(word.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "little"
    )


class _Words(dict[str, tuple[str, ...]]):
    """The words of each identifier seen."""

    def __missing__(self, identifier: str) -> tuple[str, ...]:
        if len(self) >= MEMO_SIZE:
            self.clear()
        value = self[identifier] = _words_of(identifier)
        return value


class _Hash(dict[str, int]):
    """The hash of each word seen."""

    def __missing__(self, word: str) -> int:
        if len(self) >= MEMO_SIZE:
            self.clear()
        value = self[word] = _hash(word)
        return value


class _WordHashes(dict[str, tuple[int, ...]]):
    """The hashes of the words of each identifier seen."""

    def __missing__(self, identifier: str) -> tuple[int, ...]:
        if len(self) >= MEMO_SIZE:
            self.clear()
        value = self[identifier] = tuple(map(_hash, _words_of(identifier)))
        return value


_WORDS, _HASH, _WORD_HASHES = _Words(), _Hash(), _WordHashes()


def words(text: str) -> list[str]:
    """The words of a text, in order, with repetitions.

    Stop words, keywords and parts of one letter are left out, and so is what is too long to be a
    word. Parts are stemmed by the Snowball stemmer for English (Porter 2001).

    >>> words("The clipGradNorm_ of layers")
    ['clipgradnorm_', 'clip', 'grad', 'norm', 'layer']
    """
    return list(chain.from_iterable(map(_WORDS.__getitem__, IDENTIFIER.findall(text))))


def hashes(words: Iterable[str]) -> NDArray[np.uint32]:
    """A 32-bit hash of each word, in the same order; equal on every machine and Python.

    Exact identifiers (`Parsed.names`) are hashed by this function too.
    """
    return np.fromiter(map(_HASH.__getitem__, words), dtype=np.uint32)


def name_hashes(names: Iterable[str]) -> NDArray[np.uint32]:
    """The hashes of a set of exact names: sorted, each once."""
    return frozen(np.unique(hashes(names)))


def word_stream(identifiers: Sequence[str]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The hashes of the words of many identifiers, one after the other.

    Returns:
        The hashes, and for each identifier where its words begin; one more bound at the end.
    """
    found = list(map(_WORD_HASHES.__getitem__, identifiers))
    bounds = np.zeros(len(found) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, found), dtype=np.int64, count=len(found)), out=bounds[1:])
    stream = np.fromiter(chain.from_iterable(found), dtype=np.uint32, count=int(bounds[-1]))
    return stream, bounds


def trigrams(
    words: NDArray[np.uint32], groups: NDArray[np.int32] | None = None
) -> NDArray[np.uint32]:
    """Hashes of the runs of three words: sorted, each once.

    Args:
        words: hashes of lower-cased words, in order.
        groups: a number for each word; a run does not cross from one number to another.
    """
    first, second, third = words[:-2], words[1:-1], words[2:]
    # Any odd multipliers will do: they make the order count.
    mixed = first * np.uint32(0x9E3779B1) ^ second * np.uint32(0x85EBCA77) ^ third
    if groups is not None and len(mixed):
        mixed = mixed[groups[:-2] == groups[2:]]
    return frozen(np.unique(mixed))


def phrases(text: str) -> NDArray[np.uint32]:
    """Hashes of the word trigrams of a text: sorted, each once.

    The words are those of two letters or more in lower case, neither split nor stemmed: what a
    message in the code and the same message in a log have in common.
    """
    found = [word.lower() for word in IDENTIFIER.findall(text) if len(word) > 1]
    return trigrams(hashes(found))


def frozen(array: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The array itself, from now on read-only."""
    array.flags.writeable = False
    return array


@dataclass(frozen=True, slots=True, eq=False)
class Bag:
    """How often each word occurs in a text.

    Attributes:
        hashes: of the words: sorted, each once, uint32, read-only.
        counts: how often each occurs, uint16 (more than 65,535 counts as that), read-only.
        total: how many words there are, repetitions included.
    """

    hashes: NDArray[np.uint32]
    counts: NDArray[np.uint16]
    total: int

    @classmethod
    def of(cls, words: Iterable[str]) -> Bag:
        """The bag of a list of words, as `words` gives them."""
        found, counts, total = _counted(hashes(words))
        return cls(frozen(found), counts, total)

    def __len__(self) -> int:
        """How many different words there are."""
        return len(self.hashes)


@dataclass(frozen=True, slots=True, eq=False)
class BagList:
    """Many bags of words: row ``r`` is ``bounds[r]:bounds[r + 1]`` of hashes and counts.

    Attributes:
        bounds: int64, one more than there are rows.
        hashes: of the words: sorted and each once within a row, uint32.
        counts: how often each occurs, uint16 (more than 65,535 counts as that).
        totals: words in each row, repetitions included, uint32.
    """

    bounds: NDArray[np.int64]
    hashes: NDArray[np.uint32]
    counts: NDArray[np.uint16]
    totals: NDArray[np.uint32]

    @classmethod
    def of(cls, texts: Sequence[str]) -> BagList:
        """The bag of each text, as `Bag.of` of its `words`: for many short texts much faster."""
        found = list(map(IDENTIFIER.findall, texts))
        stream, starts = word_stream(list(chain.from_iterable(found)))
        ends = starts[np.cumsum([0, *map(len, found)])]
        totals = np.diff(ends)
        # One sort for all: the row before the word.
        row = np.repeat(np.arange(len(texts), dtype=np.uint64), totals)
        both, counts, _ = _counted(row << np.uint64(32) | stream)
        bounds = np.searchsorted(both >> np.uint64(32), np.arange(len(texts) + 1, dtype=np.uint64))
        return cls(bounds, both.astype(np.uint32), counts, totals.astype(np.uint32))

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.totals)

    def take(self, rows: NDArray[np.int64]) -> BagList:
        """Some of the rows, in the order given."""
        entries, bounds = ranges(self.bounds, rows)
        return BagList(bounds, self.hashes[entries], self.counts[entries], self.totals[rows])

    def joined(self, other: BagList) -> BagList:
        """The rows of both, the other's behind."""
        return BagList(
            np.concatenate([self.bounds, other.bounds[1:] + self.bounds[-1]]),
            np.concatenate([self.hashes, other.hashes]),
            np.concatenate([self.counts, other.counts]),
            np.concatenate([self.totals, other.totals]),
        )


def ranges(
    bounds: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The entries of some rows, where row ``r`` is ``bounds[r]:bounds[r + 1]``, without a loop.

    Returns:
        The entries, row after row in the order given, and the rows' bounds among them.
    """
    begin, size = bounds[rows], bounds[rows + 1] - bounds[rows]
    found = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(size, out=found[1:])
    return np.arange(found[-1]) + np.repeat(begin - found[:-1], size), found


def _counted(values: NDArray[_Kind]) -> tuple[NDArray[_Kind], NDArray[np.uint16], int]:
    """The values, sorted and each once; how often each occurs, read-only; how many there are.

    What `np.unique` does, without what it costs when there are few values.
    """
    values = np.sort(values)
    first = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    counts = np.empty(len(starts), np.int64)
    np.subtract(starts[1:], starts[:-1], out=counts[:-1])
    if len(counts):
        counts[-1] = len(values) - starts[-1]
    clipped = np.minimum(counts, HIGHEST_COUNT).astype(np.uint16)
    clipped.flags.writeable = False
    return values[starts], clipped, len(values)
