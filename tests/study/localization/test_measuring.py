"""Techniques on the bugs of a made repository: ranks, what is kept, what cannot be used."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from epochzero.code import Repository
from epochzero.errors import InputError
from epochzero.study.localization import (
    Measured,
    bugs_of,
    clones,
    measure,
    measuring,
)
from epochzero.study.localization.bugs import releases_of
from epochzero.study.localization.ranks import Ranked, ranked, ranked_paths
from epochzero.study.localization.size import size_of
from tests.scale.test_bulk import Inline
from tests.study.localization.made import Project

TECHNIQUES = ("bm25", "blia")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("clones"))


def measured(
    project: Project, work: Path, heard: list[tuple[int, int]] | None = None
) -> list[Measured]:
    bugs = bugs_of(project.records)
    asked = {bug.report.id for bug in bugs}
    hear = [] if heard is None else heard
    return measure(
        bugs,
        asked,
        clones(project.clone.parent),
        TECHNIQUES,
        work,
        workers=1,
        on_progress=lambda *now: hear.append(now),
    )[0]


def test_releases_are_tags_whatever_their_names_hold(tmp_path: Path) -> None:
    clone = Project(tmp_path).clone
    for tag in ("v1.0", "v1.1\u2028b", "nightly"):
        subprocess.run(["git", "tag", tag], cwd=clone, check=True)
    assert {one.tag for one in releases_of(Repository(clone))} == {"v1.0", "v1.1\u2028b"}


def test_every_technique_ranks_every_bug_and_what_is_kept_is_used(
    project: Project, tmp_path: Path
) -> None:
    heard: list[tuple[int, int]] = []
    first = measured(project, tmp_path, heard)
    assert heard[-1] == (5, 5)
    assert [one.bug.report.id for one in first] == [f"owner+tool#{n}" for n in range(1, 6)]
    assert all(one.ranks["bm25"] == Ranked(1, 1, 1.0) for one in first)
    assert first[0].facts.files == 5
    assert (first[0].facts.lines, first[0].facts.complexity) == (4, 2)
    kept = sorted(tmp_path.glob("*.json"))
    assert len(kept) == 3
    # What was kept is what a second run reads; what is damaged or gone is computed again.
    kept[0].write_text("{")
    kept[1].write_text(kept[1].read_text().replace("[1, 1, 1.0]", "[2, 2, 0.5]"))
    again = measured(project, tmp_path)
    changed = kept[1].name.split(".")[2]
    assert again[0].ranks[changed] == Ranked(2, 2, 0.5)
    assert again[0].facts == first[0].facts


def test_portions_of_a_project_are_the_project(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = measured(project, tmp_path / "whole")
    monkeypatch.setattr(measuring, "PORTION", 2)
    heard: list[tuple[int, int]] = []
    portions = measured(project, tmp_path / "portions", heard)
    assert portions == whole
    assert heard[-1] == (5, 5)
    assert set(heard[:-1]) <= {(n, 5) for n in range(5)}
    # After an end of any kind, what is there is not measured again.
    (gone, *kept) = sorted((tmp_path / "portions").glob("*.bm25.*"))
    gone.unlink()
    before = [path.stat().st_mtime_ns for path in kept]
    assert measured(project, tmp_path / "portions") == whole
    assert [path.stat().st_mtime_ns for path in kept] == before
    assert gone.exists()


def test_what_ends_its_worker_twice_costs_only_its_own_bugs(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "PORTION", 2)
    monkeypatch.setattr(measuring, "opened", lambda *_, **__: Losing())
    bugs = bugs_of(project.records)
    asked = {bug.report.id for bug in bugs}
    repos = clones(project.clone.parent)
    found, lost = measure(bugs, asked, repos, ["bm25"], tmp_path / "work")
    assert (len(found), lost) == (3, {measuring.KILLED: 2})
    monkeypatch.undo()
    monkeypatch.setattr(measuring, "PORTION", 2)
    assert len(measure(bugs, asked, repos, ["bm25"], tmp_path / "work")[0]) == 5


class Losing(Inline):
    """An engine that loses the worker of the first thing that it is given, whenever it is."""

    def __init__(self) -> None:
        super().__init__(lambda _, arguments: arguments[0] == self.called[0][1])


@pytest.mark.filterwarnings("ignore")
def test_the_same_over_ray(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    bugs = bugs_of(project.records)
    asked, repos = {bug.report.id for bug in bugs}, clones(project.clone.parent)
    local = measure(bugs, asked, repos, ["bm25"], tmp_path / "local", workers=1)
    assert measure(bugs, asked, repos, ["bm25"], tmp_path / "ray", engine="ray", workers=1) == local


def test_bugs_that_cannot_be_used_are_counted(project: Project, tmp_path: Path) -> None:
    records = [
        project.records[0],
        {**project.records[1], "id": "b", "project": "owner+other"},
        {**project.records[2], "fix": {**project.records[2]["fix"], "sha": "0" * 40}},
        {**project.records[3], "fix": {**project.records[3]["fix"],
                                       "files": [{"change": "MODIFY", "old": "gone.py"}]}},
    ]  # fmt: skip
    bugs = bugs_of(records)
    asked = {bug.report.id for bug in bugs}
    found, lost = measure(bugs, asked, clones(project.clone.parent), ["bm25"], tmp_path)
    assert len(found) == 1
    assert lost == {
        "no clone of its project exists": 1,
        "the commit of its fix, or files before it, are not in the clone": 1,
        "the changed files are not in the tree that is searched": 1,
    }
    with pytest.raises(InputError, match="nothing"):
        measure(bugs, asked, {}, ["nothing"], tmp_path)


def test_lost_bugs_are_looked_for_again_when_the_clone_has_got_commits(tmp_path: Path) -> None:
    own = Project(tmp_path / "clones")
    lost = {**own.records[0]["fix"], "sha": "0" * 40}
    bugs = bugs_of([{**own.records[0], "fix": lost}, own.records[1]])
    asked = {bug.report.id for bug in bugs}

    def kept() -> int:
        measure(bugs, asked, clones(tmp_path / "clones"), ["bm25"], tmp_path / "work")
        return next((tmp_path / "work").glob("*bm25*")).stat().st_mtime_ns

    first = kept()
    assert kept() == first
    fetched = own.clone / ".git" / "FETCH_HEAD"
    fetched.touch()
    os.utime(fetched, (first / 1e9 + 5, first / 1e9 + 5))
    assert kept() > first


def test_a_broken_clone_costs_only_its_own_bugs(project: Project, tmp_path: Path) -> None:
    broken = tmp_path / "owner+tool" / ".git"
    (broken / "objects").mkdir(parents=True)
    bugs = bugs_of(project.records)
    asked = {bug.report.id for bug in bugs}
    found, lost = measure(bugs, asked, clones(tmp_path), ["bm25"], tmp_path / "work")
    assert (found, lost) == ([], {"the clone of its project cannot be read": 5})


def test_a_commit_before_the_fix_is_enough(project: Project, tmp_path: Path) -> None:
    fix = {"parent": project.parents[4], "files": project.records[4]["fix"]["files"]}
    bugs = bugs_of([{**project.records[4], "fix": fix}])
    found, lost = measure(bugs, {bugs[0].report.id}, clones(project.clone.parent), ["bm25"], tmp_path)  # fmt: skip
    assert not lost
    assert found[0].ranks["bm25"].first == 1


def test_the_average_precision_counts_files_that_are_not_given() -> None:
    scores = np.array([0.1, 0.9, 0.5, 0.7], np.float32)
    assert ranked(scores, (1, 2)) == Ranked(1, 3, pytest.approx((1 + 2 / 3) / 2))
    assert ranked_paths(["b", "x", "c"], ["b", "c"]) == Ranked(1, 3, pytest.approx((1 + 2 / 3) / 2))
    assert ranked_paths(["b"], ["b", "c"]) == Ranked(1, 0, 0.5)
    nowhere = ranked_paths(["a"], ["b"])
    assert (nowhere, nowhere.reciprocal, nowhere.within(10)) == (Ranked(0, 0, 0.0), 0.0, False)


def test_complexity_is_by_function() -> None:
    code = (
        b"def f(x):\n    return [y for y in x if y and x]\n\ndef g():\n    while 1:\n        pass\n"
    )
    assert size_of(code, "a.py") == (5, 3.0)
    assert size_of(b"# nothing\n\n", "a.py") == (0, None)
    assert size_of(b"\xff\x00" + b"(" * 3000, "a.py").complexity is None
