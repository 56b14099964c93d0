"""From files to functions: which functions of the ranked files hold the bug.

A function's score is a sum of shares of the largest, weighted by hand: BM25 of its lines, of its
qualified name, of its file's path, the file's own score, and whether frames or identifiers of the
report name it. Files are not cut off at some rank: a function that fits very well can win against
the best file. Classes are not ranked; their methods are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from epochzero.code.words import IDENTIFIER, word_stream
from epochzero.locate.corpus import Corpus
from epochzero.locate.index import K1, Floats, bm25
from epochzero.locate.mentions import Mention
from epochzero.locate.query import PARTS, Query

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from epochzero.code import Unit

__all__ = ["Functions"]

B = 0.3
"""Of BM25: a long function is punished less than a long file, since it has more room for a bug."""
FILE, NAME, PATH, FRAME, NAMED, AROUND = 1.2, 0.5, 0.4, 0.8, 0.3, 0.3
"""Weights beside the 1 of a function's lines; `docs/locate.md` has what they give."""


class Functions:
    """The functions and methods of a corpus.

    Args:
        corpus: the files.

    Attributes:
        units: the functions, in the order of the files.
        document: for each the number of its file.
        place: for each its number among the units of its file.
    """

    def __init__(self, corpus: Corpus) -> None:
        everything = [unit for parsed in corpus.parsed for unit in parsed.units]
        ranked = [n for n, unit in enumerate(everything) if unit.kind != "class"]
        rows = np.array(ranked, np.int64)
        index = corpus.index
        self.units: tuple[Unit, ...] = tuple(everything[n] for n in ranked)
        self.document: NDArray[np.int64] = index.unit_document[rows]
        self.place: NDArray[np.int64] = rows - index.unit_first[self.document]
        self._lengths = index.unit_lengths[rows]
        self._number = np.full(len(everything), -1, np.int64)
        self._number[rows] = np.arange(len(rows))
        parts = [IDENTIFIER.findall(unit.qualified) for unit in self.units]
        self._by_name = _rows_of([[unit.name] for unit in self.units])
        self._by_outer = _rows_of([names[:-1] for names in parts])
        self._name_words, bounds = word_stream([name for names in parts for name in names])
        ends = bounds[np.cumsum([0, *map(len, parts)])]
        self._name_lengths = np.diff(ends).astype(np.float32)

    def scores(
        self, query: Query, corpus: Corpus, files: Floats, mentioned: Sequence[Mention]
    ) -> Floats:
        """How likely each function holds the bug; higher is likelier, (functions,).

        Args:
            query: what is looked for.
            corpus: the one given to the constructor.
            files: the score of each file by any technique, (documents,).
            mentioned: which files the report names.
        """
        if not self.units:
            return np.zeros(0, np.float32)
        weights = query.weights[:, PARTS.index("all")]
        found = corpus.find(query)
        path = bm25(corpus.path_counts(query), corpus.path_lengths, weights[:, None])[:, 0]
        row = self._number[found.unit]
        own = row >= 0
        lines = _bm25(row[own], found.word[own], found.count[own], self._lengths, weights)
        total = (
            _shares(lines)
            + NAME * _shares(self._names(query, weights))
            + PATH * _shares(path[self.document])
            + FILE * _shares(files)[self.document]
            + self._named(query)
        )
        for number, weight in self._framed(mentioned):
            total[number] += weight
        return np.asarray(total, np.float32)

    def _names(self, query: Query, weights: Floats) -> Floats:
        """BM25 of each function's qualified name."""
        row = np.repeat(np.arange(len(self.units)), self._name_lengths.astype(np.int64))
        word = np.searchsorted(query.hashes, self._name_words)
        word[word == len(query.hashes)] = 0
        same = query.hashes[word] == self._name_words if len(query.hashes) else word < 0
        once = np.ones(int(same.sum()), np.float32)
        return _bm25(row[same], word[same], once, self._name_lengths, weights)

    def _named(self, query: Query) -> Floats:
        """Identifiers of the report that are a function's name, or that of what is around it."""
        scores = np.zeros(len(self.units), np.float32)
        around = np.zeros(len(self.units), np.float32)
        for name in query.identifiers["all"]:
            rows = self._by_name.get(name)
            if rows is not None:
                scores[rows] += NAMED / len(rows)
            around[self._by_outer.get(name, _NO_ROWS)] = AROUND
        return scores + around

    def _framed(self, mentioned: Sequence[Mention]) -> Iterator[tuple[int, float]]:
        """Functions in which a frame lies, by its name and by its line; the innermost count most."""
        by_name: Counter[int] = Counter()
        by_line: Counter[int] = Counter()
        frames = [mention for mention in mentioned if mention.frame is not None]
        for distance, mention in enumerate(reversed(frames), 1):
            frame = mention.frame
            first, last = np.searchsorted(self.document, [mention.document, mention.document + 1])
            for number in range(int(first), int(last)):
                unit = self.units[number]
                if frame is not None and frame.function == unit.name:
                    by_name.setdefault(number, distance)
                if frame is not None and frame.line and unit.start <= frame.line <= unit.end:
                    by_line.setdefault(number, distance)
        for distances in (by_name, by_line):
            for number, distance in distances.items():
                yield number, FRAME / distance


_NO_ROWS = np.zeros(0, np.int64)


def _rows_of(names: Sequence[Sequence[str]]) -> Mapping[str, NDArray[np.int64]]:
    """The rows in which each name stands."""
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for row, held in enumerate(names):
        for name in held:
            rows[name].append(row)
    return {name: np.array(held, np.int64) for name, held in rows.items()}


def _bm25(
    row: NDArray[np.int64],
    word: NDArray[np.int64],
    count: Floats,
    lengths: Floats,
    weights: Floats,
) -> Floats:
    """BM25 as `epochzero.locate.index.bm25` has it, over occurrences instead of a matrix.

    Args:
        row, word, count: of each occurrence the document, the word, and how often it occurs.
        lengths: words in each document, (documents,).
        weights: of each word, (words,).

    Returns:
        Scores, (documents,).
    """
    n = len(lengths)
    df = np.bincount(word, minlength=len(weights))
    idf = np.log1p((n - df + 0.5) / (df + 0.5))
    soft = count + K1 * (1 - B + B * lengths[row] / max(float(lengths.mean()), 1e-9))
    part = count / soft * idf[word] * weights[word]
    return np.bincount(row, part, minlength=n).astype(np.float32)


def _shares(scores: Floats) -> Floats:
    """Scores from 0 for the least to 1 for the best."""
    least = min(float(scores.min()), 0.0)
    span = float(scores.max()) - least
    return (scores - least) / span if span > 0 else np.zeros_like(scores)
