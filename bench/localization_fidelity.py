"""Our BugLocator and BLUiR beside their published results of each bug, and what makes the difference.

The results are those of Jahan, Shah and Rahman, "Towards Understanding the Challenges of Bug
Localization in Deep Learning Systems" (EMSE 2025); of BLIA only means are published. Trees are
releases, as there. One circumstance is changed at a time, then all at once; every setting ranks the
same bugs.

    python bench/localization_fidelity.py --repos DIR
"""

from __future__ import annotations

import argparse
import csv
import pickle
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from common import data_path, rate, save
from localization import Options, options_of
from localization_measure import keep
from localization_study import (
    StudyFile,
    Vocabulary,
    bluir,
    buglocator,
    cleaned,
    numbers,
    study_file,
)
from localization_tables import show, table

from epochzero.code import Cache, File, Repository, Snapshot, is_test, language_of, parse_snapshot
from epochzero.errors import InputError
from epochzero.locate.corpus import Corpus
from epochzero.locate.query import query_of
from epochzero.locate.report import PastReport, Report
from epochzero.locate.techniques import TECHNIQUES
from epochzero.study.localization.bugs import (
    PYTHON,
    Bug,
    Release,
    Tree,
    bugs_of,
    by_project,
    clones,
    past_of,
    release_before,
    releases_of,
)
from epochzero.study.localization.ranks import Ranked, ranked

Floats = npt.NDArray[np.float32]
Ranks = Mapping[str, Mapping[str, Ranked]]
"""By setting and technique."""

STUDIED = ("buglocator", "bluir")
PUBLISHED = "published"
FORMAT = 1
"""Goes up when what is kept of a project changes."""
STUDY = {"buglocator": buglocator, "bluir": bluir}
DEFINITIONS = ("modified", "modified or renamed", "modified, with tests", "any kind of file")


@dataclass(frozen=True, slots=True)
class Setting:
    """Under which circumstances files are ranked.

    Attributes:
        tree: whose files.
        search_tests, want_tests: whether test files are searched, and count when the fix changed
            them.
        clean: whether the report is cleaned as in the study before our own words are made.
        past: whether past reports are known.
        study: whether the study's formulas and words are taken.
    """

    tree: Tree = "release"
    search_tests: bool = False
    want_tests: bool = False
    clean: bool = False
    past: bool = True
    study: bool = False


BASE = Setting()
SETTINGS: Mapping[str, Setting] = {
    "ours, release": BASE,
    "ours, the fix's parent": replace(BASE, tree="parent"),
    "ours, tests searched": replace(BASE, search_tests=True),
    "ours, tests searched and wanted": replace(BASE, search_tests=True, want_tests=True),
    "ours, report cleaned": replace(BASE, clean=True),
    "ours, no past reports": replace(BASE, past=False),
    "study's formulas": replace(BASE, study=True),
    "all as in the study": Setting(search_tests=True, want_tests=True, past=False, study=True),
}


class Published(NamedTuple):
    """A published result: the release searched, the size of the truth, 1 / rank, AP."""

    version: str
    files: int
    reciprocal: float
    precision: float


@dataclass(frozen=True, slots=True)
class Compared:
    """A bug in every setting.

    Attributes:
        bug: it.
        same_release: whether we search the release that the study searched.
        ranks: of the files wanted.
    """

    bug: Bug
    same_release: bool
    ranks: Ranks


def main() -> None:
    """Measures, prints the table and keeps it."""
    parser = argparse.ArgumentParser(description=__doc__)
    options = options_of(parser, "localization_fidelity")
    published = _published()
    compared, lost = _everything(options, published)
    alike = [c for c in compared if len(_wanted(c.bug, True)) == _of(published, c.bug).files]
    tables = {
        part: {name: _table(name, rows, published) for name in STUDIED}
        for part, rows in (("all", compared), ("equal truth", alike))
    }
    for name in STUDIED:
        show(name, tables["all"][name])
    save(
        options.out,
        {
            "bugs": len(compared),
            "projects": len({c.bug.project for c in compared}),
            "lost": lost,
            "same_release": rate(sum(c.same_release for c in compared), len(compared)),
            "same_truth_size": _truths(compared, published),
            "tables": tables,
        },
        data=[options.data.described()],
    )


def _published() -> Mapping[tuple[str, str], Published]:
    """By technique and bug, in lower case."""
    found = {}
    with data_path("jahan2025/per_bug_denchmark.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            bug = f"{row['project']}#{row['bug']}".lower()
            found[row["method"], bug] = Published(
                row["version"], int(row["buggy_files"]), float(row["rr"]), float(row["ap"])
            )
    return found


def _of(published: Mapping[tuple[str, str], Published], bug: Bug) -> Published:
    return published[STUDIED[0], bug.report.id.lower()]


# -- Ranking -------------------------------------------------------------------------------------


def _everything(
    options: Options, published: Mapping[tuple[str, str], Published]
) -> tuple[list[Compared], Mapping[str, int]]:
    """The bugs that the study has, too, and how many are lost, by the reason."""
    found = clones(options.repos)
    compared: list[Compared] = []
    lost: Counter[str] = Counter()
    for project, bugs in sorted(by_project(bugs_of(options.data.records)).items()):
        asked = [b for b in bugs if (STUDIED[0], b.report.id.lower()) in published]
        if not asked or project.lower() not in found:
            continue
        kept = options.kept / f"{project}.fidelity.{FORMAT}.pickle"
        if not kept.exists():
            trees = Trees(
                Repository(found[project.lower()]), Cache(options.work / "cache" / project)
            )
            keep(kept, _project(asked, bugs, trees))
        ranks, missing = pickle.loads(kept.read_bytes())
        lost.update(missing)
        for bug in asked:
            if bug.report.id in ranks:
                tag, of_bug = ranks[bug.report.id]
                compared.append(Compared(bug, tag == _of(published, bug).version, of_bug))
        print(f"{project}: {len(asked)} bugs", file=sys.stderr, flush=True)
    return compared, dict(lost)


def _project(
    asked: Sequence[Bug], bugs: Sequence[Bug], trees: Trees
) -> tuple[Mapping[str, tuple[str, Ranks]], Mapping[str, int]]:
    """The release and the ranks of each bug, and how many bugs are lost, by the reason."""
    ranks: dict[str, tuple[str, Ranks]] = {}
    lost: Counter[str] = Counter()
    for bug in sorted(asked, key=lambda b: b.report.opened or 0.0):
        try:
            ranks[bug.report.id] = trees.release(bug).tag, _ranks(bug, bugs, trees)
        except InputError as error:
            lost[_reason(error)] += 1
    return ranks, lost


def _reason(error: InputError) -> str:
    known = ("changed files", "no release before")
    return str(error) if str(error).startswith(known) else "commit or file missing in the clone"


class Trees:
    """The trees of a repository, the last of each kind kept: most bugs of a release share it.

    Args:
        repository: where they are.
        cache: of parsed files.
    """

    def __init__(self, repository: Repository, cache: Cache) -> None:
        self.repository = repository
        self._releases = releases_of(repository)
        self._cache = cache
        self._vocabulary = Vocabulary()
        self._study: dict[str, StudyFile] = {}
        self._corpora: dict[tuple[Tree, bool], tuple[str, Corpus]] = {}
        self._files: dict[bool, tuple[str, list[StudyFile]]] = {}

    def release(self, bug: Bug) -> Release:
        """The last release before a report."""
        return release_before(self._releases, bug.report.opened or 0.0)

    def corpus(self, bug: Bug, tree: Tree, tests: bool, past: Sequence[PastReport]) -> Corpus:
        """The files of a tree."""
        rev = self.release(bug).commit
        if tree == "parent":
            rev = self.repository.resolve(f"{bug.fix}~1").id
        commit, corpus = self._corpora.get((tree, tests), ("", None))
        if corpus is None or commit != rev:
            snapshot = self.repository.snapshot(rev)
            files = _searched(snapshot, tests)
            parsed = parse_snapshot(snapshot, files, self._cache, 1)
            corpus = Corpus([file.path for file in files], parsed)
            self._corpora[tree, tests] = rev, corpus
        return corpus.with_known(None, past)

    def study(self, bug: Bug, tests: bool) -> list[StudyFile]:
        """The files of the release with the study's words."""
        rev = self.release(bug).commit
        commit, found = self._files.get(tests, ("", []))
        if commit != rev:
            snapshot = self.repository.snapshot(rev)
            files = _searched(snapshot, tests)
            new = {file.blob: file for file in files if file.blob not in self._study}
            for file, data in snapshot.read(new.values()):
                self._study[file.blob] = study_file(data, self._vocabulary)
            empty = study_file(b"", self._vocabulary)
            found = [self._study.get(file.blob, empty) for file in files]
            self._files[tests] = rev, found
        return found

    def scores(self, bug: Bug, tests: bool) -> Mapping[str, Floats]:
        """The scores by the study's formulas."""
        files = self.study(bug, tests)
        asked = numbers(f"{bug.report.title}\n{bug.report.text}", self._vocabulary)
        return {name: STUDY[name](asked, files) for name in STUDIED}


def _searched(snapshot: Snapshot, tests: bool) -> list[File]:
    return [
        file
        for file in snapshot.files
        if language_of(file.path) in PYTHON and (tests or not is_test(file.path))
    ]


def _ranks(bug: Bug, bugs: Sequence[Bug], trees: Trees) -> Ranks:
    """A bug in every setting.

    Raises:
        InputError: it cannot be ranked in one of them.
    """
    past = past_of(bug, bugs)
    ranks: dict[str, Mapping[str, Ranked]] = {}
    for name, setting in SETTINGS.items():
        known = past if setting.past else []
        corpus = trees.corpus(bug, setting.tree, setting.search_tests, known)
        paths = _wanted(bug, setting.want_tests)
        wanted = sorted({corpus.number[path] for path in paths if path in corpus.number})
        if not wanted or len(corpus) < 2:
            raise InputError("changed files are not in the tree")
        if setting.study:
            scores = trees.scores(bug, setting.search_tests)
        else:
            query = query_of(_cleaned(bug.report) if setting.clean else bug.report)
            scores = {each: TECHNIQUES[each].make().scores(query, corpus) for each in STUDIED}
        ranks[name] = {each: ranked(scores[each], wanted) for each in STUDIED}
    return ranks


def _cleaned(report: Report) -> Report:
    return replace(report, title=cleaned(report.title), text=cleaned(report.text))


def _wanted(bug: Bug, tests: bool) -> Sequence[str]:
    """The files that the fix modified; with tests those and nothing that was renamed, as in the
    study.
    """
    return _changed(bug, DEFINITIONS[2]) if tests else bug.files


# -- Tables --------------------------------------------------------------------------------------


def _changed(bug: Bug, definition: str) -> list[str]:
    """The files of a fix by one of `DEFINITIONS`."""
    return list(dict.fromkeys(_counted(bug.raw["fix"]["files"], definition)))


def _counted(files: Sequence[Mapping[str, str]], definition: str) -> Iterator[str]:
    kinds = ("MODIFY", "RENAME") if definition == "modified or renamed" else ("MODIFY",)
    for file in files:
        path = str(file["old"] or "").replace("\\", "/")
        with_tests = definition not in DEFINITIONS[:2]
        python = path.endswith(".py") or definition == "any kind of file"
        if file["change"] in kinds and python and (with_tests or not is_test(path)):
            yield path


def _truths(
    compared: Sequence[Compared], published: Mapping[tuple[str, str], Published]
) -> Mapping[str, float | None]:
    """For how many bugs each definition of the truth gives as many files as were published."""
    return {
        definition: rate(
            sum(len(_changed(c.bug, definition)) == _of(published, c.bug).files for c in compared),
            len(compared),
        )
        for definition in DEFINITIONS
    }


def _table(
    name: str, compared: Sequence[Compared], published: Mapping[tuple[str, str], Published]
) -> Mapping[str, Mapping[str, float]]:
    """Each setting of one technique, with its correlation with what was published."""
    theirs = [published[name, c.bug.report.id.lower()] for c in compared]
    reciprocal = np.array([each.reciprocal for each in theirs])
    rows: dict[str, Mapping[str, float]] = {PUBLISHED: _measures(theirs)}
    for setting in SETTINGS:
        ranks = [c.ranks[setting][name] for c in compared]
        own = np.array([1 / rank.first for rank in ranks])
        rows[setting] = {
            **{key: value for key, value in table(ranks).items() if key != "all_10"},
            "spearman": round(_spearman(own, reciprocal), 3),
            "same_first_rank": round(float(np.isclose(own, reciprocal).mean()), 3),
        }
    return rows


def _measures(found: Sequence[Published]) -> Mapping[str, float]:
    # A reciprocal rank of 0 is a bug that the study did not find at all.
    as_ranks = [
        Ranked(round(1 / each.reciprocal) if each.reciprocal else sys.maxsize, 0, each.precision)
        for each in found
    ]
    return {key: value for key, value in table(as_ranks).items() if key != "all_10"}


def _spearman(own: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> float:
    return float(np.corrcoef(_middle_ranks(own), _middle_ranks(other))[0, 1])


def _middle_ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    _, of, ties = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(ties) - (ties - 1) / 2)[of])


if __name__ == "__main__":
    main()
