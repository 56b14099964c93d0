"""Fixes told by their commits: messages that stand for reports, for the learned ranking to learn from.

Reports with a known fix are few, commits that say what they fix are many. A message is shorter than
a report and written by who knows the fix, so it weighs less (`WEIGHT`), and none is ever reported
on. What a project's model learns from leaves out the project's commits with its reports.
"""

from __future__ import annotations

import pickle
import random
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from multiprocessing import get_context
from os import sched_getaffinity
from pathlib import Path

import numpy as np
from common import SEED
from learning_to_rank import Example
from localization_data import Bug, Case, cases_of, clones, is_source
from localization_measure import FORMAT, keep

from epochzero.code import Cache, Change, History, Repository
from epochzero.errors import InputError
from epochzero.locate.features import features_of
from epochzero.locate.query import query_of
from epochzero.locate.report import Report

__all__ = ["commit_examples"]

A_PROJECT = 40
"""So many commits of a project at most."""
MOST_FILES = 6
LARGEST_COMMIT = 15
FEWEST_WORDS = 5
LAG_S = 4 * 86_400.0
"""The median time from a report to its fix in Denchmark; the history ends so long before the commit."""
WEIGHT = 0.3
KEPT_FILES = 150

_TRAILER = re.compile(
    r"^\s*(?:Signed-off-by|Co-authored-by|Reviewed-by|Reviewed By|Summary|Test Plan|Change-Id|Merge"
    r"|Pull Request resolved|Differential Revision|fbshipit-source-id|PiperOrigin-RevId).*$",
    re.IGNORECASE | re.MULTILINE,
)
_NUMBER = re.compile(
    r"\(#\d+\)|\b(?:fix(?:es|ed)?|close[sd]?|resolve[sd]?):?\s*#\d+", re.IGNORECASE
)
_WORD = re.compile(r"[A-Za-z]{2,}")


@dataclass(frozen=True, slots=True)
class _Job:
    project: str
    clone: Path
    kept: Path
    cache: Path


def commit_examples(repos: Path, work: Path, named: Iterable[str]) -> list[Example]:
    """Examples from the fixes of all repositories.

    Args:
        repos: folder of clones.
        work: where to keep what is computed for a project.
        named: the projects of the reports. A repository that is there under two names counts once,
            under the name that the reports use, so that it can be left out with them.
    """
    jobs = [
        _Job(project, path, work / f"{project}.commits.{FORMAT}.pickle", work / "cache")
        for project, path in _distinct(clones(repos), named).items()
    ]
    found: list[Example] = []
    with get_context("spawn").Pool(len(sched_getaffinity(0)), maxtasksperchild=1) as pool:
        for number, (project, examples) in enumerate(pool.imap_unordered(_project, jobs), 1):
            found += examples
            told = f"{number}/{len(jobs)} {project}: {len(examples)} commits"
            print(told, file=sys.stderr, flush=True)
    return sorted(found, key=lambda example: example.bug)


def _distinct(found: Mapping[str, Path], named: Iterable[str]) -> Mapping[str, Path]:
    """Each repository once: those with the same first commit are the same."""
    names = {name.lower(): name for name in named}
    chosen: dict[str, str] = {}
    for name in sorted(found, key=lambda name: (name not in names, name)):
        try:
            git = Repository(found[name]).git
            roots = git.run("rev-list", "--max-parents=0", "HEAD").split()
        except InputError:
            continue
        chosen.setdefault(min(roots).decode(), name)
    return {names.get(name, name): found[name] for name in sorted(chosen.values())}


def _project(job: _Job) -> tuple[str, list[Example]]:
    """The examples of one repository."""
    if not job.kept.exists():
        repository = Repository(job.clone)
        bugs = _drawn(job.project, History(repository))
        cases = cases_of(bugs, repository, Cache(job.cache / job.project))
        keep(job.kept, [_example(case) for case in cases if isinstance(case, Case)])
    examples: list[Example] = pickle.loads(job.kept.read_bytes())
    return job.project, examples


def _drawn(project: str, history: History) -> list[Bug]:
    """Some of the fixes of a few source files each, with messages that say something."""
    found = [bug for change in history.changes if (bug := _bug(project, change)) is not None]
    return random.Random(SEED).sample(found, min(A_PROJECT, len(found)))


def _bug(project: str, change: Change) -> Bug | None:
    files = tuple(path for path in change.files if is_source(path))
    if not change.is_fix or not 0 < len(files) <= MOST_FILES or len(change.files) > LARGEST_COMMIT:
        return None
    message = _NUMBER.sub("", _TRAILER.sub("", change.message)).strip()
    if len(_WORD.findall(message)) < FEWEST_WORDS:
        return None
    title, _, text = message.partition("\n")
    report = Report(title.strip(), text.strip(), f"commit {change.commit}", change.time - LAG_S)
    return Bug(report, project, None, change.commit, files, {}, {})


def _example(case: Case) -> Example:
    """The features of the likeliest files: the others are not learned from."""
    names, values = features_of(query_of(case.bug.report), case.corpus)
    order = np.argsort(-values[:, names.index("guess")], kind="stable")[:KEPT_FILES]
    rows = sorted({*order.tolist(), *case.wanted})
    wanted = tuple(rows.index(number) for number in case.wanted)
    return Example(case.bug.report.id, case.bug.project, names, values[rows], wanted, WEIGHT)
