"""Report x code -> Ranking: from a bug report or a failure to the file, function and line.

`Locator` holds what is expensive to build (the corpus of a revision) and answers any number of
reports; `locate` is the one-off form.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, Union, get_args

from epochzero.code import LARGEST_BYTES, MOST_CHANGES, Cache, History, Repository, Snapshot
from epochzero.errors import InputError
from epochzero.locate.bug_kind import read_kind
from epochzero.locate.corpus import CODE_LANGUAGES, Corpus
from epochzero.locate.histories import read_history
from epochzero.locate.model import Extrinsic, Item, Level, Ranking, Reason
from epochzero.locate.past_reports import read_past
from epochzero.locate.query import Query, query_of, query_of_diagnosis
from epochzero.locate.ranker import LEARNED, shipped
from epochzero.locate.report import PastReport, Report, read_report
from epochzero.locate.rerank import CANDIDATES, Reranker, evidence
from epochzero.locate.search import Search, Tree
from epochzero.locate.techniques import TECHNIQUES
from epochzero.locate.techniques.spectrum import (
    FORMULAS,
    OCHIAI,
    Run,
    read_coverage,
    suspicious_files,
    suspicious_functions,
    suspicious_lines,
)
from epochzero.number_formats import counted

if TYPE_CHECKING:
    from epochzero.diagnose import Diagnosis
    from epochzero.locate.techniques.base import Technique

__all__ = [
    "DEFAULT_METHOD",
    "FORMULAS",
    "LEVELS",
    "METHODS",
    "Extrinsic",
    "Item",
    "Level",
    "Locator",
    "PastReport",
    "Query",
    "Ranking",
    "Reason",
    "Report",
    "Reranker",
    "Run",
    "evidence",
    "locate",
    "query_of",
    "query_of_diagnosis",
    "read_coverage",
    "read_past",
    "read_report",
    "with_diagnosis",
]

_MOST_SUBMODULES = 3
DEFAULT_METHOD = LEARNED
METHODS: Mapping[str, Callable[[], Technique]] = {
    LEARNED: shipped,
    **{name: method.make for name, method in TECHNIQUES.items()},
}
"""What makes each technique, by its name."""
WITH_HISTORY = frozenset({LEARNED}) | {name for name, m in TECHNIQUES.items() if m.uses_history}
"""The methods that use the history of changes; for the others it is not read."""
LEVELS: tuple[Level, ...] = get_args(Level)

Subject: TypeAlias = Union[str, Report, Query, "Diagnosis"]
"""What to search for: the text of a report, or a query that was built from one."""


class Locator:
    """Finds bugs in one repository.

    The corpus of the last revision stays in memory, so process all reports of one
    revision before the next. An instance serves one thread.

    Args:
        repository: a repository or where it is.
        cache: parsed files of earlier runs; histories are stored in its directory.
        past: reports that were closed before, with the files that their fixes changed. Of these
            a report sees those that were closed before it was opened.
        on_progress: called with the number of files that are parsed and of all.

    Raises:
        InputError: it is no repository.
    """

    def __init__(
        self,
        repository: Repository | str | os.PathLike[str],
        *,
        cache: Cache | None = None,
        past: Sequence[PastReport] = (),
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._repository = (
            repository if isinstance(repository, Repository) else Repository(repository)
        )
        self._cache = cache
        self._past = tuple(past)
        self._on_progress = on_progress
        self._tree: Tree | None = None

    def locate(
        self,
        report: Subject,
        rev: str | None = "HEAD",
        *,
        level: Level = "file",
        method: str = DEFAULT_METHOD,
        top: int = 10,
        explain: bool = False,
        excerpts: bool = False,
        reranker: Reranker | None = None,
    ) -> Ranking:
        """Where the bug of a report is.

        Nothing later than the report's opening is used, where that is known: neither changes nor
        past reports. The tree is the caller's choice.

        Args:
            report: the text of a report, a report, a query or a diagnosis.
            rev: the revision to search; None for the work tree as it lies there.
            level: rank files, functions or lines.
            method: one of `METHODS`.
            top: how many places to give at most. A place that has nothing in common with the report
                is never given.
            explain: give recent fixes among the reasons too, for which the history is read.
            excerpts: give source lines of each place.
            reranker: sends the first places with their evidence to a language model, which orders
                them; nothing is sent without it.

        Raises:
            InputError: the level, the method or the revision is unknown, the report is empty, or
                there is nothing to search.
        """
        _check(level, method, top, METHODS)
        query = _query(report)
        tree = self._tree_at(rev)
        corpus = self._as_of(tree, query, explain or method in WITH_HISTORY)
        kind = read_kind(query, tree.packages)
        query = corpus.narrowed(query)
        search = Search(query, corpus, tree, METHODS[method]().scores(query, corpus))
        items = search.items(level, max(top, CANDIDATES) if reranker else top)
        if excerpts or reranker:
            items = search.with_excerpts(items)
        ranking = Ranking(
            commit=tree.searched_commit,
            level=level,
            method=method,
            searched=len(corpus),
            items=items,
            bug_type=kind.type,
            extrinsic=kind.extrinsic,
            notes=(*_notes(corpus.history), *_submodule_notes(tree.snapshot)),
        )
        if reranker:
            ranking = reranker.rerank(query.report, ranking)
        first = ranking.items[:top]
        if not excerpts:
            first = tuple(replace(item, excerpt="") for item in first)
        return replace(ranking, items=first)

    def covered(
        self,
        runs: Sequence[Run],
        rev: str | None = "HEAD",
        *,
        level: Level = "file",
        method: str = OCHIAI,
        top: int = 10,
    ) -> Ranking:
        """Where the bug is that makes some runs fail and not others, by what each covered.

        Args:
            runs: passing and failing ones, as `read_coverage` gives them; their paths start at the
                top of the repository.
            rev: the revision that ran; None for the work tree.
            level: rank files, functions or lines.
            method: one of `techniques.spectrum.FORMULAS`.
            top: how many places to give at most.

        Raises:
            InputError: the level, the method or the revision is unknown, no run fails, or no file
                that a failing run covered is searched.
        """
        _check(level, method, top, FORMULAS)
        tree = self._tree_at(rev)
        formula = FORMULAS[method]
        if level == "line":
            items = suspicious_lines(runs, formula)
        elif level == "file":
            items = suspicious_files(runs, formula)
        else:
            units = {
                path: [unit for unit in parsed.units if unit.kind != "class"]
                for path, parsed in zip(tree.corpus.paths, tree.corpus.parsed, strict=True)
            }
            items = suspicious_functions(runs, units, formula)
        known = [item for item in items if item.path in tree.corpus.number]
        if not known:
            raise InputError(
                "no source file covered by a failing run is in the repository; paths in the coverage report must be "
                "relative to its root, so run coverage there"
            )
        return Ranking(
            tree.searched_commit,
            level,
            method,
            len(tree.corpus),
            tuple(known[:top]),
            notes=_submodule_notes(tree.snapshot),
        )

    def _tree_at(self, rev: str | None) -> Tree:
        """The files of a revision; a working tree is read again each time."""
        if rev is None:
            snapshot = self._repository.working_tree()
            committed = self._repository.snapshot(snapshot.commit.id)
            clean = _readable(snapshot) == _readable(committed)
            self._tree = self._built(snapshot, "the working tree", clean)
        else:
            commit = self._repository.resolve(rev)
            if self._tree is None or self._tree.searched_commit != commit.id:
                self._tree = None  # before the next is built, for the memory
                self._tree = self._built(self._repository.snapshot(commit.id), rev, clean=True)
        return self._tree

    def _built(self, snapshot: Snapshot, name: str, clean: bool) -> Tree:
        corpus = Corpus.of(snapshot, self._cache, on_progress=self._on_progress)
        if not len(corpus):
            languages = ", ".join(sorted(CODE_LANGUAGES - {"tsx"}))
            raise InputError(
                f"{self._repository.path}: no source files to search at {name}: none of its {len(snapshot.files)} files is {languages} "
                "outside tests"
            )
        return Tree(snapshot, corpus, snapshot.commit.id if clean else "")

    def _as_of(self, tree: Tree, query: Query, with_history: bool) -> Corpus:
        """The corpus with what was known when the report was opened."""
        opened = query.report.opened
        past = tuple(report for report in self._past if opened is None or report.closed < opened)
        history = self._history(tree, opened) if with_history else None
        if not past and history is None:
            return tree.corpus
        # What is built of a corpus serves the next report, if nothing else is known then.
        known = tree.known
        if known is None or known.history is not history or known.reported != past:
            tree.known = tree.corpus.with_known(history, past)
        return tree.known or tree.corpus

    def _history(self, tree: Tree, opened: float | None) -> History:
        if tree.history is None:
            folder = self._cache.path.parent if self._cache else None
            tree.history = read_history(self._repository, tree.snapshot.commit.id, folder)
        history = tree.history
        if opened is None or not history.changes or history.changes[0].time < opened:
            return history
        return History(self._repository, history.tip, int(opened), history)


def locate(
    report: Subject,
    repository: Repository | str | os.PathLike[str],
    rev: str | None = "HEAD",
    *,
    level: Level = "file",
    method: str = DEFAULT_METHOD,
    top: int = 10,
    explain: bool = False,
    excerpts: bool = False,
    reranker: Reranker | None = None,
    cache: Cache | None = None,
    past: Sequence[PastReport] = (),
    on_progress: Callable[[int, int], None] | None = None,
) -> Ranking:
    """Return the likely places of the bug of a report; `Locator` describes the arguments.

    >>> import epochzero
    >>> epochzero.locate("Crash in the loader", ".").items[0].path  # doctest: +SKIP
    'src/data/loader.py'

    Raises:
        InputError: as `Locator` and `Locator.locate`.
    """
    locator = Locator(repository, cache=cache, past=past, on_progress=on_progress)
    return locator.locate(
        report,
        rev,
        level=level,
        method=method,
        top=top,
        explain=explain,
        excerpts=excerpts,
        reranker=reranker,
    )


def with_diagnosis(report: Report | None, diagnosis: Diagnosis) -> Query:
    """What a diagnosis gives to search by, together with the report of the same failure, if any."""
    query = query_of_diagnosis(diagnosis)
    if report is None:
        return query
    described = query.report
    return query_of(replace(report, text=f"{report.text}\n\n{described.title}\n{described.text}"))


def _check(level: str, method: str, top: int, methods: Collection[str]) -> None:
    if level not in LEVELS:
        raise InputError(f"unknown level {level!r}; choose one of {', '.join(LEVELS)}")
    if method not in methods:
        raise InputError(f"unknown method {method!r}; choose one of {', '.join(methods)}")
    if top < 1:
        raise InputError(f"top must be at least 1, not {top}")


def _query(report: Subject) -> Query:
    if isinstance(report, Query):
        return report
    if isinstance(report, str):
        return query_of(read_report(report))
    return query_of(report) if isinstance(report, Report) else query_of_diagnosis(report)


def _submodule_notes(snapshot: Snapshot) -> tuple[str, ...]:
    if not snapshot.submodules:
        return ()
    shown = ", ".join(snapshot.submodules[:_MOST_SUBMODULES])
    more = "" if len(snapshot.submodules) <= _MOST_SUBMODULES else ", ..."
    count = counted(len(snapshot.submodules), "submodule")
    return (f"{count} not searched ({shown}{more}); to search one, pass its directory as --repo",)


def _notes(history: History | None) -> tuple[str, ...]:
    """What is missing of a history."""
    if history is None:
        return ()
    notes = []
    if history.cut:
        notes.append(f"only the newest {MOST_CHANGES:,} commits of the history were used")
    if history.shallow:
        notes.append("the clone is shallow: older commits are missing (run git fetch --unshallow)")
    return tuple(notes)


def _readable(snapshot: Snapshot) -> set[tuple[str, str]]:
    """What is known of the files' content; that of large ones in a work tree is not."""
    return {(file.path, file.blob) for file in snapshot.files if file.size <= LARGEST_BYTES}
