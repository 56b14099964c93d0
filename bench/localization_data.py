"""Bug reports with their fixes, and the repositories as they stood before.

Nothing later than a report's opening is used: the history and the past reports end there; the tree
is that of the fix's parent, or of the last release before the report.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
from learning_to_rank import Example

from epochzero.code import Cache, History, Repository, Snapshot, is_test
from epochzero.errors import InputError
from epochzero.locate.corpus import Corpus
from epochzero.locate.report import PastReport, Report, seconds

__all__ = [
    "PYTHON",
    "TREES",
    "Bug",
    "Case",
    "Measured",
    "Release",
    "Tree",
    "bugs_of",
    "by_project",
    "cases_of",
    "clones",
    "knows_fix",
    "past_of",
    "release_before",
    "releases_of",
]

Floats = npt.NDArray[np.float32]

PYTHON = frozenset({"python"})
Tree = Literal["parent", "release"]
"""Where a bug is looked for: as the files were before its fix, or in the release that its reporter
could have had."""
TREES: tuple[Tree, ...] = get_args(Tree)


@dataclass(frozen=True, slots=True)
class Bug:
    """A report with its fix.

    Attributes:
        report: without anything later than its opening.
        project: ``owner+name``.
        closed: in seconds since the epoch; None where it was not closed.
        fix: hash of the commit.
        files: old paths of the source files that the fix modified or renamed, without tests.
        functions: of each such file the functions and methods that the fix changed.
        raw: the record.
    """

    report: Report
    project: str
    closed: float | None
    fix: str
    files: tuple[str, ...]
    functions: Mapping[str, tuple[str, ...]]
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A bug and the corpus in which it is to be found.

    Attributes:
        bug: the bug.
        corpus: the files before the fix, with history and reports up to the report's opening.
        wanted: numbers of the files in the corpus that the fix changed.
        tree: the commit whose files they are.
    """

    bug: Bug
    corpus: Corpus
    wanted: tuple[int, ...]
    tree: str


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A bug with all that its tables need.

    Attributes:
        example: features and the files wanted.
        scores: of each technique.
        localized: the report names a file that the fix changed.
        knows_fix: the reporter shows a fix or announces a pull request.
        kind, extrinsic: the labels, where there are any.
        classes: of the project.
        files: paths of the files wanted.
        shared: the largest share of the report's different words that a wanted file holds.
        seconds: for the corpus, parsed files being kept, and for the features.
    """

    example: Example
    scores: Mapping[str, Floats]
    localized: bool
    knows_fix: bool
    kind: str
    extrinsic: bool | None
    classes: tuple[str, ...]
    files: tuple[str, ...]
    shared: float
    seconds: tuple[float, float]


def clones(folder: Path) -> Mapping[str, Path]:
    """The repositories in a folder by ``owner+name`` in lower case: the folder itself, or ``repo``
    or ``repo/.git`` in it.
    """
    found = {}
    for entry in sorted(folder.iterdir()):
        for path in (entry / "repo" / ".git", entry / "repo", entry / ".git", entry):
            if (path / "objects").is_dir():
                found[entry.name.lower()] = path
                break
    return found


def bugs_of(records: Iterable[Mapping[str, Any]]) -> list[Bug]:
    """The bugs that were fixed in source files other than tests."""
    found = []
    for raw in records:
        if not raw["fix"]:
            continue
        changed = [
            file
            for file in raw["fix"]["files"]
            if file["change"] in ("MODIFY", "RENAME") and _is_source(file["old"])
        ]
        if changed:
            found.append(_bug(raw, changed))
    return found


def _is_source(path: str | None) -> bool:
    return bool(path) and str(path).endswith(".py") and not is_test(str(path).replace("\\", "/"))


def _bug(raw: Mapping[str, Any], changed: Sequence[Mapping[str, Any]]) -> Bug:
    files = tuple(str(file["old"]).replace("\\", "/") for file in changed)
    functions = {
        path: tuple(method["name"] for method in file["methods"])
        for path, file in zip(files, changed, strict=True)
    }
    report = Report(
        raw["summary"] or "", raw["description"] or "", raw["id"], seconds(raw["opened"])
    )
    closed = seconds(raw["closed"])
    return Bug(report, raw["project"], closed, raw["fix"]["sha"], files, functions, raw)


class Release(NamedTuple):
    """A tag that names a version: when its commit was made, the tag, and the commit's hash."""

    time: int
    tag: str
    commit: str


_VERSION = re.compile(r"\d+\.\d+")


def releases_of(repository: Repository) -> list[Release]:
    """The releases of a repository, the oldest first: pre-releases too, as in the study of Jahan et
    al. (EMSE 2025), whose releases these are for 96 % of the bugs that it shares with Denchmark.
    """
    fields = "%(refname:strip=2)\t%(committerdate:unix)%(*committerdate:unix)\t"
    listed = repository.git.run(
        "for-each-ref", f"--format={fields}%(*objectname)%(objectname)", "refs/tags"
    )
    found = []
    for line in listed.decode("utf-8", "replace").splitlines():
        tag, time, commit = line.split("\t")
        if time and _VERSION.search(tag):
            found.append(Release(int(time), tag, commit[:40]))
    return sorted(found)


def release_before(releases: Sequence[Release], time: float) -> Release:
    """The last release before a moment.

    Raises:
        InputError: there is none.
    """
    place = bisect_left(releases, time, key=attrgetter("time"))
    if not place:
        raise InputError("no release before the report" if releases else "the clone has no release")
    return releases[place - 1]


def cases_of(
    bugs: Sequence[Bug], repository: Repository, cache: Cache, tree: Tree = "parent"
) -> Iterator[Case | str]:
    """The bugs of one project with their corpora, the oldest first; a text where one cannot be had.

    Args:
        bugs: all bugs of the project: also those that are not asked for serve as past reports.
        repository: a clone.
        cache: of parsed files.
        tree: whose files are searched. A bug that no release comes before is lost, not looked for
            elsewhere. History ends at the report's opening with either.
    """
    known: History | None = None
    standing: Corpus | None = None
    commit = ""
    releases = releases_of(repository) if tree == "release" else []
    for bug in sorted(bugs, key=lambda b: b.report.opened or 0.0):
        try:
            parent = repository.resolve(repository.resolve(bug.fix).parents[0])
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
            yield Case(bug, corpus, tuple(sorted(set(wanted))), commit)
        else:
            yield f"{bug.report.id}: the changed files are not in the tree that is searched"


def _corpus(snapshot: Snapshot, cache: Cache) -> Corpus:
    return Corpus.of(snapshot, cache, languages=PYTHON, workers=1)


def past_of(bug: Bug, bugs: Sequence[Bug]) -> list[PastReport]:
    """The reports of the same project that were closed before this one was opened."""
    opened = bug.report.opened
    return [
        PastReport(other.report, other.closed, other.files)
        for other in bugs
        if opened is not None and other.closed is not None and other.closed < opened
    ]


_FIX_KNOWN = re.compile(
    r"\b(?:submit|open|creat|mak|send|sent|put in)(?:e|ed|ing|ting|ted)? (?:a|the) "
    r"(?:PR|pull ?request|patch)\b(?!\?)|proposed (?:fix|change|solution)|I (?:have |'ve )?fixed "
    r"(?:it|this)|\bth(?:is|e) (?:PR|pull request|patch) (?:fix|add|chang|resolv|make)",
    re.IGNORECASE,
)


def knows_fix(text: str) -> bool:
    """Whether a reporter shows a fix or announces a pull request, as far as the words tell: such a
    report may say where the bug is because the fix was written before it.
    """
    return bool(_FIX_KNOWN.search(text))


def by_project(bugs: Iterable[Bug]) -> Mapping[str, list[Bug]]:
    """The bugs of each project."""
    found: defaultdict[str, list[Bug]] = defaultdict(list)
    for bug in bugs:
        found[bug.project].append(bug)
    return dict(found)
