"""Runs every technique on every bug; results are stored, so that a second run is fast.

The bugs of a project are measured in portions, each by one worker. For each portion, the working directory contains
one file per technique and one with facts about its bugs: what an interrupted run has finished is not computed again.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from statistics import fmean
from typing import Any

import epochzero
from epochzero.code import Cache, Repository
from epochzero.errors import InputError
from epochzero.locate import METHODS
from epochzero.locate.bug_kind import read_kind
from epochzero.locate.query import Query, query_of
from epochzero.locate.search import Tree as Searched
from epochzero.locate.techniques import TECHNIQUES
from epochzero.scale.engines import ProcessEngine, opened
from epochzero.scale.mapping import each
from epochzero.study.localization.bugs import Bug, BugCase, Tree, by_project, cases_of
from epochzero.study.localization.ranks import Ranked, ranked
from epochzero.study.localization.size import size_of

DEFAULT_TECHNIQUES = tuple(
    name for name in METHODS if name not in TECHNIQUES or not TECHNIQUES[name].extra
)
"""Techniques that require no extra: bjXnet needs torch and hours, because it reads a graph of every file for every bug."""
FORMAT = 1
"""Increased when the meaning of stored results changes."""
LARGE_FIX = 30
"""Largest number of files of a fix whose size and complexity are measured."""
PORTION = 50
"""Number of bugs of a project that one worker measures, oldest first, since each history includes the previous
one."""
NO_CLONE = "no clone of its project exists"
BROKEN_CLONE = "the clone of its project cannot be read"
KILLED = "its worker process was killed twice, probably because memory was exhausted; fewer --workers may help"
_FACTS = "facts"
StoredResult = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BugFacts:
    """Facts about a bug other than its ranks.

    Attributes:
        files: number of files that were searched.
        wanted: paths of the files that the fix changed.
        lines: lines of code, averaged over the files of the fix.
        complexity: their mean cyclomatic complexity; None if unknown.
        kind: the most probable type, of `epochzero.locate.bug_kind.TYPES`.
        extrinsic: probability that the bug is extrinsic.
    """

    files: int
    wanted: tuple[str, ...]
    lines: float
    complexity: float | None
    kind: str
    extrinsic: float


@dataclass(frozen=True, slots=True)
class Measured:
    """A bug with its rank by each technique."""

    bug: Bug
    facts: BugFacts
    ranks: Mapping[str, Ranked]


@dataclass(frozen=True, slots=True)
class _Job:
    """A portion of a project: ``asked`` of its bugs; the others are past reports."""

    bugs: Sequence[Bug]
    asked: frozenset[str]
    clone: Path
    work: Path
    tree: Tree
    techniques: tuple[str, ...]

    @property
    def project(self) -> str:
        """``owner+name``."""
        return self.bugs[0].project

    def result_file(self, part: str) -> Path:
        """Return the file of a technique, or of the facts."""
        return self.work / f"{self.project}.{self.tree}.{part}.{self._digest()}.json"

    def _digest(self) -> str:
        """Digest of everything that a rank depends on, except the clone."""
        inputs = [
            (bug.report.id, bug.report.title, bug.report.text, bug.fix, bug.parent, bug.files,
             bug.report.opened, bug.closed, bug.report.id in self.asked)
            for bug in self.bugs
        ]  # fmt: skip
        encoded = json.dumps([FORMAT, epochzero.__version__, inputs])
        return blake2b(encoded.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def measure(
    bugs: Sequence[Bug],
    asked: Collection[str],
    repositories: Mapping[str, Path],
    techniques: Sequence[str],
    work: Path,
    *,
    tree: Tree = "parent",
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    on_progress: Callable[[int, int], object] = lambda done, of: None,
) -> tuple[list[Measured], Mapping[str, int]]:
    """Rank bugs by each technique.

    Args:
        bugs: all bugs; those that are not requested serve as past reports of their projects.
        asked: ids of the bugs to measure.
        repositories: clones by ``owner+name`` in lower case.
        techniques: names of `epochzero.locate.METHODS`.
        work: directory in which results are stored.
        tree: whose files are searched.
        engine: ``local`` for processes of this machine, or ``ray``; then each machine of the cluster must have the
            clones at the same path.
        workers: number of concurrent workers; by default the number of cores.
        address: of a Ray cluster; if None, one is started on this machine.
        on_progress: called with the number of finished bugs and the total.

    Returns:
        The measured bugs, by id, and the number of bugs that could not be measured, by reason.

    Raises:
        InputError: a technique is unknown or unavailable, ``work`` cannot be written to, Ray is not
            installed, or its cluster does not answer.
    """
    for name in techniques:
        if name not in METHODS:
            raise InputError(f"unknown technique {name!r}; choose one of {', '.join(METHODS)}")
        METHODS[name]()
    wanted = frozenset(asked)
    lost: Counter[str] = Counter()
    jobs: list[_Job] = []
    for project, own in by_project(bugs).items():
        ordered = [bug.report.id for bug in sorted(own, key=_opened)]
        ids = [name for name in dict.fromkeys(ordered) if name in wanted]
        clone = repositories.get(project.lower())
        if clone is None:
            lost[NO_CLONE] += len(ids)
        elif not _is_repository(clone):
            lost[BROKEN_CLONE] += len(ids)
        else:
            jobs += [
                _Job(own, frozenset(part), clone, work, tree, tuple(techniques))
                for part in (ids[at : at + PORTION] for at in range(0, len(ids), PORTION))
            ]
    try:
        work.mkdir(parents=True, exist_ok=True)
        measured = []
        for found, left in _done(
            jobs, lambda: opened(engine, workers, address, once=True), on_progress
        ):
            measured += found
            lost.update(left)
    except OSError as error:
        raise InputError(f"{work}: {error.strerror or error}") from error
    return sorted(measured, key=lambda m: m.bug.report.id), {k: n for k, n in lost.items() if n}


def _opened(bug: Bug) -> float:
    return bug.report.opened or 0.0


def _done(
    jobs: Sequence[_Job],
    open_engine: Callable[[], ProcessEngine],
    on_progress: Callable[[int, int], object],
) -> Iterator[tuple[list[Measured], Counter[str]]]:
    """Yield stored results first, then computed ones, largest portions first."""
    total, finished = sum(len(job.asked) for job in jobs), 0

    def done(job: _Job) -> tuple[list[Measured], Counter[str]]:
        nonlocal finished
        finished += len(job.asked)
        on_progress(finished, total)
        return _joined(job)

    on_progress(0, total)
    waiting = []
    for job in jobs:
        if _missing(job):
            waiting.append(job)
        else:
            yield done(job)
    if not waiting:
        return
    engine = open_engine()
    try:
        largest_first = sorted(waiting, key=lambda job: -len(job.asked))
        for job, computed in each(engine, _compute, largest_first):
            for part, result in (computed or {}).items():
                _store(job.result_file(part), result)
            yield done(job)
    finally:
        engine.close()


def _is_repository(clone: Path) -> bool:
    try:
        Repository(clone)
    except InputError:
        return False
    return True


def _missing(job: _Job) -> list[str]:
    return [part for part in (_FACTS, *job.techniques) if _is_missing(job, job.result_file(part))]


def _is_missing(job: _Job, path: Path) -> bool:
    """Whether a part is not stored, or lacks bugs that the clone may contain since it was updated."""
    stored = _read(path)
    return stored is None or (
        bool(stored.get("lost")) and _fetched(job.clone) > path.stat().st_mtime
    )


def _fetched(clone: Path) -> float:
    """Return when the clone last received commits, in seconds since the epoch."""
    signs = (clone / "FETCH_HEAD", clone / "objects" / "pack")
    return max((sign.stat().st_mtime for sign in signs if sign.exists()), default=0.0)


def _joined(job: _Job) -> tuple[list[Measured], Counter[str]]:
    facts = _read(job.result_file(_FACTS))
    if facts is None:
        return [], Counter({KILLED: len(job.asked)})
    ranks = {
        name: (_read(job.result_file(name)) or {"bugs": {}})["bugs"] for name in job.techniques
    }
    found = []
    for bug in job.bugs:
        own = facts["bugs"].get(bug.report.id)
        if own is not None:
            by = {name: Ranked(*ranks[name][bug.report.id]) for name in job.techniques}
            found.append(Measured(bug, BugFacts(**{**own, "wanted": tuple(own["wanted"])}), by))
    return found, Counter(facts["lost"].values())


def _read(path: Path) -> StoredResult | None:
    """Return stored results; None if there is nothing usable."""
    try:
        stored = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return stored if isinstance(stored, dict) and isinstance(stored.get("bugs"), dict) else None


def _store(path: Path, result: StoredResult) -> None:
    """Write the file atomically."""
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps(result), encoding="utf-8")
    partial.replace(path)


# In the worker process


def _compute(job: _Job) -> Mapping[str, StoredResult]:
    """Compute what is missing, by technique."""
    missing = _missing(job)
    methods = {name: METHODS[name]() for name in missing if name != _FACTS}
    found: dict[str, StoredResult] = {name: {} for name in missing}
    lost: dict[str, str] = {}
    repository, cache = Repository(job.clone), Cache(job.work / "code" / job.project)
    for case in cases_of(job.bugs, repository, cache, job.tree, job.asked):
        if isinstance(case, str):
            bug, _, reason = case.partition(": ")
            lost[bug] = _reason(reason)
            continue
        bug, query = case.bug.report.id, query_of(case.bug.report)
        for name, method in methods.items():
            found[name][bug] = ranked(method.scores(query, case.corpus), case.wanted)
        if _FACTS in found:
            found[_FACTS][bug] = _facts(case, query)
    cache.close()
    return {name: {"bugs": of, "lost": lost} for name, of in found.items()}


def _reason(message: str) -> str:
    """Return one of few reasons, since git's messages differ from bug to bug."""
    known = ("not in the tree", "release")
    if any(words in message for words in known):
        return message
    return "the commit of its fix, or files before it, are not in the clone"


def _facts(case: BugCase, query: Query) -> StoredResult:
    snapshot = case.corpus.snapshot
    assert snapshot is not None  # `cases_of` builds the corpus from one
    own = Searched(snapshot, case.corpus, case.tree).packages
    kind = read_kind(query, own)
    wanted = [case.corpus.paths[number] for number in case.wanted]
    files = [file for file in snapshot.files if file.path in {*wanted[:LARGE_FIX]}]
    sizes = [size_of(data, file.path) for file, data in snapshot.read(files)]
    complexities = [size.complexity for size in sizes if size.complexity is not None]
    return {
        "files": len(case.corpus),
        "wanted": wanted,
        "lines": fmean(size.lines for size in sizes),
        "complexity": fmean(complexities) if complexities else None,
        "kind": kind.type,
        "extrinsic": kind.extrinsic.probability,
    }
