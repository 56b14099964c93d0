"""A report against the functions of a corpus: words, names, frames, and a first guess.

The guess is a sum of shares of the largest, weighted by hand: BM25 of a function's lines, of its
qualified name, of its file's path, the file's own score, and whether frames or identifiers of the
report name it. It chooses the candidates that the learned ranking sees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from epochzero.locate.corpus import Corpus
from epochzero.locate.features.context import ALL
from epochzero.locate.functions.table import NO_ROWS, FunctionTable
from epochzero.locate.index import K1, Floats, bm25
from epochzero.locate.mentions import Mention
from epochzero.locate.query import Query

if TYPE_CHECKING:
    from numpy.typing import NDArray


B = 0.3
"""Of BM25: a long function is punished less than a long file, since it has more room for a bug."""
FILE, NAME, PATH, FRAME, NAMED, AROUND = 1.2, 0.5, 0.4, 0.8, 0.3, 0.3
"""Weights relative to 1 for a function's own lines; `docs/locate.md` has their effect."""


@dataclass(frozen=True, slots=True, eq=False)
class Occurrences:
    """Where the words of a query occur in functions.

    Attributes:
        row: of each occurrence the function.
        word: of each the word.
        value: of each what BM25 gives it, without the weight of the word in the query.
    """

    row: NDArray[np.int64]
    word: NDArray[np.int64]
    value: Floats

    def scores(self, weights: Floats, rows: int) -> Floats:
        """BM25 of each of so many functions, (rows,), for weights of the words, (words,)."""
        part = self.value * weights[self.word]
        return np.bincount(self.row, part, minlength=rows).astype(np.float32)

    def among(self, place: NDArray[np.int64]) -> Occurrences:
        """Those in some functions, renumbered.

        Args:
            place: for each function its new number, -1 for those left out.
        """
        new = place[self.row]
        valid = new >= 0
        return Occurrences(new[valid], self.word[valid], self.value[valid])


class FunctionContext:
    """A query against the functions of a corpus.

    Args:
        table: the functions.
        query: what to search for.
        corpus: the one from which the table was built, with the knowledge of that time.
        files: the score of each file by any technique, (documents,).
        mentioned: which files the report names.
    """

    def __init__(
        self,
        table: FunctionTable,
        query: Query,
        corpus: Corpus,
        files: Floats,
        mentioned: Sequence[Mention],
    ) -> None:
        self.table = table
        self.query = query
        self.corpus = corpus
        self.files = shares_of(files)
        self.mentioned = mentioned

    @cached_property
    def lines(self) -> Occurrences:
        """The words of the query in the lines of functions."""
        found = self.corpus.find(self.query)
        row = self.table.number[found.unit]
        own = row >= 0
        return self._valued(row[own], found.word[own], found.count[own], self.table.lengths)

    @cached_property
    def names(self) -> Occurrences:
        """The words of the query in the qualified names of functions."""
        lengths, held = self.table.name_lengths, self.table.name_words
        row = np.repeat(np.arange(len(lengths)), lengths.astype(np.int64))
        hashes = self.query.hashes
        word = np.searchsorted(hashes, held)
        word[word == len(hashes)] = 0
        same = hashes[word] == held if len(hashes) else word < 0
        once = np.ones(int(same.sum()), np.float32)
        return self._valued(row[same], word[same], once, lengths)

    def _valued(
        self, row: NDArray[np.int64], word: NDArray[np.int64], count: Floats, lengths: Floats
    ) -> Occurrences:
        """BM25 as `epochzero.locate.index.bm25` has it, over occurrences instead of a matrix."""
        n = len(lengths)
        df = np.bincount(word, minlength=len(self.query.terms))
        idf = np.log1p((n - df + 0.5) / (df + 0.5))
        soft = count + K1 * (1 - B + B * lengths[row] / max(float(lengths.mean()), 1e-9))
        return Occurrences(row, word, np.asarray(count / soft * idf[word], np.float32))

    @cached_property
    def guess(self) -> Floats:
        """How likely each function holds the bug, by the sum of shares, (functions,)."""
        n = len(self.table)
        weights = self.query.weights[:, ALL]
        corpus, query = self.corpus, self.query
        path = bm25(corpus.path_counts(query), corpus.path_lengths, weights[:, None])[:, 0]
        total = (
            shares(self.lines.scores(weights, n))
            + NAME * shares(self.names.scores(weights, n))
            + PATH * shares(path[self.table.document])
            + FILE * self.files[self.table.document]
            + self._named()
        )
        for distances in (self.framed_by_name, self.framed_by_line):
            for row, distance in distances.items():
                total[row] += FRAME / distance
        return np.asarray(total, np.float32)

    def _named(self) -> Floats:
        """Identifiers of the report that are a function's name, or that of what is around it."""
        scores = np.zeros(len(self.table), np.float32)
        around = np.zeros(len(self.table), np.float32)
        for name in self.query.identifiers["all"]:
            rows = self.table.by_name.get(name)
            if rows is not None:
                scores[rows] += NAMED / len(rows)
            around[self.table.by_outer.get(name, NO_ROWS)] = AROUND
        return scores + around

    @cached_property
    def framed_by_name(self) -> Mapping[int, int]:
        """The functions that a frame names, with the frame's distance from the innermost: 1."""
        return {row: distance for row, distance, by_name, _ in self._framed if by_name}

    @cached_property
    def framed_by_line(self) -> Mapping[int, int]:
        """The functions in which the line of a frame lies, with the distance from the innermost."""
        return {row: distance for row, distance, _, by_line in self._framed if by_line}

    @cached_property
    def _framed(self) -> list[tuple[int, int, bool, bool]]:
        """Functions with the distance of a frame that may lie there, the outermost first: so that
        if a function occurs several times, the innermost frame counts.
        """
        found = []
        frames = [mention for mention in self.mentioned if mention.frame is not None]
        for distance, mention in enumerate(reversed(frames), 1):
            frame = mention.frame
            assert frame is not None
            for row in self.table.of_file(mention.document):
                unit = self.table.units[row]
                by_name = frame.function == unit.name
                by_line = frame.line is not None and unit.start <= frame.line <= unit.end
                if by_name or by_line:
                    found.append((row, distance, by_name, by_line))
        return found[::-1]


def shares_of(scores: Floats) -> Floats:
    """Scores of any scale from 0 for the least to 1 for the best."""
    least, best = float(scores.min(initial=np.inf)), float(scores.max(initial=-np.inf))
    return (scores - least) / (best - least) if best > least else np.zeros_like(scores)


def shares(scores: Floats) -> Floats:
    """Scores from 0 for the least (of those below 0, or 0) to 1 for the best."""
    least = min(float(scores.min(initial=0.0)), 0.0)
    span = float(scores.max(initial=least)) - least
    return (scores - least) / span if span > 0 else np.zeros_like(scores)
