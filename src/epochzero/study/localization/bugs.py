"""Bugs with their fixes, and the source files before the fix.

Nothing later than a report's opening is used: the history and the past reports end there; the tree is that of the
fix's parent, or of the last release before the report.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from epochzero.code import Cache, History, Repository, Snapshot, is_test
from epochzero.errors import InputError, reading
from epochzero.locate.corpus import Corpus
from epochzero.locate.report import PastReport, Report, seconds

PYTHON = frozenset({"python"})
Tree = Literal["parent", "release"]
"""Which files are searched: those before the fix, or those of the release that the reporter could have
had."""
TREES: tuple[Tree, ...] = get_args(Tree)


@dataclass(frozen=True, slots=True)
class Bug:
    """A report with its fix.

    Attributes:
        report: without anything later than its opening.
        project: ``owner+name``.
        closed: in seconds since the epoch; None if it was not closed.
        fix: hash of the commit; empty if only its parent is known.
        parent: hash of the commit before the fix; empty if it is the first parent of ``fix``.
        files: old paths of the source files that the fix modified or renamed, without tests.
        functions: functions and methods that the fix changed, by file.
        raw: the record.
    """

    report: Report
    project: str
    closed: float | None
    fix: str
    parent: str
    files: tuple[str, ...]
    functions: Mapping[str, tuple[str, ...]]
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BugCase:
    """A bug and the corpus that is searched for it.

    Attributes:
        bug: the bug.
        corpus: the files before the fix, with history and reports up to the report's opening.
        wanted: indices in the corpus of the files that the fix changed.
        tree: commit of the files.
    """

    bug: Bug
    corpus: Corpus
    wanted: tuple[int, ...]
    tree: str


def clones(folder: Path) -> Mapping[str, Path]:
    """Return the repositories in a directory by ``owner+name`` in lower case: the subdirectory itself, or ``repo``
    or ``repo/.git`` in it.

    Raises:
        InputError: the directory does not exist.
    """
    found = {}
    with reading(folder):
        entries = sorted(folder.iterdir())
    for entry in entries:
        for path in (entry / "repo" / ".git", entry / "repo", entry / ".git", entry):
            if (path / "objects").is_dir():
                found[entry.name.lower()] = path
                break
    return found


# Records


def bugs_of(records: Iterable[Mapping[str, Any]]) -> list[Bug]:
    """Return the bugs that were fixed in Python files other than tests."""
    return [bug for raw in records if isinstance(bug := bug_of(raw), Bug)]


def bug_of(raw: Mapping[str, Any]) -> Bug | str:
    """Return the bug of a record in the shared format (``docs/study.md``), or why there is none."""
    fix = raw.get("fix")
    if not isinstance(fix, Mapping) or not (fix.get("sha") or fix.get("parent")):
        return "its fix is unknown"
    title, text = raw.get("summary") or "", raw.get("description") or ""
    if (
        not isinstance(title, str)
        or not isinstance(text, str)
        or not re.search(r"\w", title + text)
    ):
        return "it has neither a title nor a description"
    if not isinstance(raw.get("id"), str) or not isinstance(raw.get("project"), str):
        return "its id or its project is missing"
    try:
        changed = [file for file in fix["files"] if _is_searched(file)]
        files = tuple(file["old"].replace("\\", "/") for file in changed)
        functions = {
            path: tuple(method["name"] for method in file.get("methods") or ())
            for path, file in zip(files, changed, strict=True)
        }
    except (KeyError, TypeError, AttributeError):
        return "the files of its fix cannot be read"
    if not files:
        return "its fix changes no Python file outside tests"
    report = Report(title, text, raw["id"], _moment(raw.get("opened")))
    return Bug(
        report,
        raw["project"],
        _moment(raw.get("closed")),
        fix.get("sha") or "",
        fix.get("parent") or "",
        files,
        functions,
        raw,
    )


def _moment(value: Any) -> float | None:
    return seconds(value) if isinstance(value, str) else None


def _is_searched(file: Mapping[str, Any]) -> bool:
    path = (file["old"] or "").replace("\\", "/")
    return file["change"] in ("MODIFY", "RENAME") and path.endswith(".py") and not is_test(path)


def by_project(bugs: Iterable[Bug]) -> Mapping[str, list[Bug]]:
    """Return the bugs of each project."""
    found: defaultdict[str, list[Bug]] = defaultdict(list)
    for bug in bugs:
        found[bug.project].append(bug)
    return dict(found)


def past_of(bug: Bug, bugs: Sequence[Bug]) -> list[PastReport]:
    """Return the reports of the same project that were closed before this one was opened."""
    opened = bug.report.opened
    return [
        PastReport(other.report, other.closed, other.files)
        for other in bugs
        if opened is not None and other.closed is not None and other.closed < opened
    ]


# Trees


class Release(NamedTuple):
    """A tag that names a version: time of its commit, tag, and hash of the commit."""

    time: int
    tag: str
    commit: str


_VERSION = re.compile(r"\d+\.\d+")


def releases_of(repository: Repository) -> list[Release]:
    """Return the releases of a repository, oldest first. Pre-releases count, as in the study of Jahan et al.
    (EMSE 2025), whose releases these are for 96 % of the bugs that it shares with Denchmark.
    """
    fields = "%(refname:strip=2)\t%(committerdate:unix)%(*committerdate:unix)\t"
    listed = repository.git.run(
        "for-each-ref", f"--format={fields}%(*objectname)%(objectname)", "refs/tags"
    )
    found = []
    for line in listed.decode("utf-8", "replace").split("\n")[:-1]:
        tag, time, commit = line.split("\t")
        if time and _VERSION.search(tag):
            found.append(Release(int(time), tag, commit[:40]))
    return sorted(found)


def release_before(releases: Sequence[Release], time: float) -> Release:
    """Return the last release before a time.

    Raises:
        InputError: there is none.
    """
    place = bisect_left(releases, time, key=attrgetter("time"))
    if not place:
        raise InputError("no release before the report" if releases else "the clone has no release")
    return releases[place - 1]


def cases_of(
    bugs: Sequence[Bug],
    repository: Repository,
    cache: Cache | None,
    tree: Tree = "parent",
    asked: Collection[str] | None = None,
) -> Iterator[BugCase | str]:
    """Yield the bugs of one project with their corpora, oldest first; a text ``ID: reason`` for a bug without one.

    Args:
        bugs: all bugs of the project; those that are not requested serve as past reports.
        repository: a clone.
        cache: of parsed files.
        tree: whose files are searched. A bug without an earlier release is reported as lost. The history ends at
            the report's opening in either case.
        asked: ids of the requested bugs; all if None.
    """
    known: History | None = None
    standing: Corpus | None = None
    commit = ""
    releases = releases_of(repository) if tree == "release" else []
    given = [bug for bug in bugs if asked is None or bug.report.id in asked]
    for bug in sorted(given, key=lambda b: b.report.opened or 0.0):
        try:
            before = bug.parent or repository.resolve(bug.fix).parents[0]
            parent = repository.resolve(before)
            opened = int(bug.report.opened or parent.time)
            rev = release_before(releases, opened).commit if tree == "release" else parent.id
            known = History(repository, parent.id, known=known)
            history = History(repository, parent.id, until=opened, known=known)
            if standing is None or rev != commit:
                standing, commit = _corpus(repository.snapshot(rev), cache), rev
            corpus = standing.with_known(history, past_of(bug, bugs))
        except (InputError, IndexError) as error:
            yield f"{bug.report.id}: {error}"
            continue
        wanted = tuple(corpus.number[path] for path in bug.files if path in corpus.number)
        if wanted and len(corpus) > 1:
            yield BugCase(bug, corpus, tuple(sorted(set(wanted))), commit)
        else:
            yield f"{bug.report.id}: the changed files are not in the tree that is searched"


def _corpus(snapshot: Snapshot, cache: Cache | None) -> Corpus:
    return Corpus.of(snapshot, cache, languages=PYTHON, workers=1)
