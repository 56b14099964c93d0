"""One query in one tree: from the scores of files to ranked files, functions or lines with reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from epochzero.locate.corpus import Corpus
from epochzero.locate.excerpts import excerpt
from epochzero.locate.explain import Explainer
from epochzero.locate.functions import Functions
from epochzero.locate.index import Floats
from epochzero.locate.lines import FunctionLine, LineScorer
from epochzero.locate.mentions import Mention, mentions
from epochzero.locate.model import Item, Level, Reason
from epochzero.locate.query import Query

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from epochzero.code import History, Snapshot


FUNCTIONS_WITH_LINES = 20
"""Of so many of the best functions lines are ranked."""
FUNCTIONS_SHOWN = 3
"""So many of the best functions of a file are in its excerpt."""


@dataclass
class Tree:
    """The files at one moment, and what was built of them.

    Attributes:
        snapshot: the files.
        corpus: those that are searched.
        searched_commit: empty when they are not those of a commit.
        history: of this revision, once it was requested.
        known: the corpus with what was known when the last report was opened.
    """

    snapshot: Snapshot
    corpus: Corpus
    searched_commit: str
    history: History | None = None
    known: Corpus | None = None

    @cached_property
    def functions(self) -> Functions:
        """The functions of the corpus."""
        return Functions(self.corpus)

    @cached_property
    def packages(self) -> frozenset[str]:
        """The top-level Python packages: folders of one, below no other."""
        folders = {parts[:-1] for parts in self.corpus.parts if parts[-1] == "__init__"}
        return frozenset(f[-1] for f in folders if f and f[:-1] not in folders)

    def lines(self, paths: set[str]) -> Mapping[str, list[str]]:
        """The lines of some files.

        Raises:
            InputError: a file cannot be read.
        """
        wanted = [file for file in self.snapshot.files if file.path in paths]
        return {
            file.path: content.decode("utf-8", "replace").split("\n")
            for file, content in self.snapshot.read(wanted)
        }


@dataclass
class Search:
    """A query, answered.

    Args:
        query: what to search for.
        corpus: where, with what was known when the report was opened.
        tree: the files of the corpus.
        scores: how likely each file is, by any technique, (documents,).
    """

    query: Query
    corpus: Corpus
    tree: Tree
    scores: Floats

    def items(self, level: Level, top: int) -> tuple[Item, ...]:
        """The likeliest places that have anything in common with the report.

        Raises:
            InputError: a file cannot be read.
        """
        places: Mapping[Level, Callable[[], Iterator[Item]]] = {
            "file": self._files,
            "function": self._functions,
            "line": self._lines,
        }
        return tuple(islice(places[level](), top))

    @cached_property
    def _mentioned(self) -> tuple[Mention, ...]:
        return mentions(self.query, self.corpus)

    @cached_property
    def _explainer(self) -> Explainer:
        return Explainer(self.query, self.corpus, self._mentioned)

    @cached_property
    def _related(self) -> NDArray[np.bool_]:
        """Whether each file has anything in common with the report, or past reports led there,
        (documents,).
        """
        words = self.corpus.find(self.query).fields["whole"] + self.corpus.path_counts(self.query)
        number = self.corpus.number
        fixed = {number[path] for past in self.corpus.past for path in past.fixed if path in number}
        everything = np.arange(len(self.corpus))
        named = np.isin(everything, [mention.document for mention in self._mentioned])
        led_there = np.isin(everything, list(fixed)) & (self.scores > self.scores.min())
        return np.asarray((words > 0).any(axis=1) | named | led_there, np.bool_)

    def _files(self) -> Iterator[Item]:
        order = np.argsort(-self.scores, kind="stable")
        for document in order[self._related[order]].tolist():
            score = float(self.scores[document])
            yield Item(
                self.corpus.paths[document], score, reasons=self._explainer.reasons(document)
            )

    def _best_functions(self) -> Iterator[tuple[int, float]]:
        """The numbers of functions with their scores."""
        functions = self.tree.functions
        scores = functions.scores(self.query, self.corpus, self.scores, self._mentioned)
        order = np.argsort(-scores, kind="stable")
        for number in order[self._related[functions.document[order]]].tolist():
            yield number, float(scores[number])

    def _function_reasons(self, number: int) -> tuple[Reason, ...]:
        functions = self.tree.functions
        document, place = int(functions.document[number]), int(functions.place[number])
        return self._explainer.reasons(document, functions.units[number], place)

    def _functions(self) -> Iterator[Item]:
        functions = self.tree.functions
        for number, score in self._best_functions():
            path, unit = self._path(number), functions.units[number]
            reasons = self._function_reasons(number)
            yield Item(path, score, unit.qualified, unit.start, unit.end, reasons)

    def _path(self, number: int) -> str:
        """The file of a function."""
        return self.corpus.paths[int(self.tree.functions.document[number])]

    def _lines(self) -> Iterator[Item]:
        given: set[tuple[str, int]] = set()
        for line, number in sorted(
            self._scored_lines(), key=lambda scored_line: -scored_line[0].score
        ):
            path = self._path(number)
            # A line of a function within a function is a line of both.
            if (path, line.number) not in given:
                given.add((path, line.number))
                shown = (Reason("frame", "the report shows this line"),) if line.shown else ()
                reasons = (*shown, *self._function_reasons(number))
                name = self.tree.functions.units[number].qualified
                yield Item(path, line.score, name, line.number, line.number, reasons, line.text)

    def _scored_lines(self) -> Sequence[tuple[FunctionLine, int]]:
        """The lines of the best functions, with the function's number."""
        functions = self.tree.functions
        best = list(islice(self._best_functions(), FUNCTIONS_WITH_LINES))
        content = self.tree.lines({self._path(number) for number, _ in best})
        highest = max((score for _, score in best), default=0.0) or 1.0
        return [
            (line, number)
            for number, score in best
            for line in self._line_scorer.lines(
                int(functions.document[number]),
                (functions.units[number].start, functions.units[number].end),
                content[self._path(number)],
                score / highest,
            )
        ]

    # -- Source lines --------------------------------------------------------------------------

    def with_excerpts(self, items: Sequence[Item]) -> tuple[Item, ...]:
        """Items with the source lines that fit the report best.

        Raises:
            InputError: a file cannot be read.
        """
        content = self.tree.lines({item.path for item in items})
        spans = self._best_spans({item.path for item in items if not item.start})
        return tuple(
            replace(
                item,
                excerpt=excerpt(
                    content[item.path],
                    self.corpus.number[item.path],
                    [(item.start, item.end)] if item.start else spans[item.path],
                    self._line_scorer,
                ),
            )
            for item in items
        )

    def _best_spans(self, paths: set[str]) -> Mapping[str, Sequence[tuple[int, int]]]:
        """The lines of the best functions of some files."""
        spans: dict[str, list[tuple[int, int]]] = {path: [] for path in paths}
        missing = set(paths)
        for number, _ in self._best_functions() if paths else ():
            path, unit = self._path(number), self.tree.functions.units[number]
            if path in missing:
                spans[path].append((unit.start, unit.end))
                if len(spans[path]) == FUNCTIONS_SHOWN:
                    missing.remove(path)
                    if not missing:
                        break
        return spans

    @cached_property
    def _line_scorer(self) -> LineScorer:
        return LineScorer(self.query, self.corpus, self._mentioned)
