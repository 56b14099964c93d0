"""``epochzero study localization`` over a made repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.study.localization.made import Project

if TYPE_CHECKING:
    from conftest import Command


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Project(tmp_path / "clones")


def test_reports_and_clones_become_a_report(run: Command, project: Project, tmp_path: Path) -> None:
    reports = project.reports(tmp_path / "reports.jsonl")
    rows = [{"id": "owner+tool#1", "technique": "ochiai", "files": ["loader.py"]}, {"id": "x"}]
    rankings = tmp_path / "rankings.jsonl"
    rankings.write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = ("study", "localization", "--reports", reports, "--repos", project.clone.parent,
            "--techniques", "bm25,bluir", "--rankings", rankings, "--out", tmp_path / "out", "-j", "1")  # fmt: skip
    done = run(*told)
    assert done.code == 0
    assert "5 of 1 project; 1 left out" in done.out
    assert "bm25: deep learning 1.000 (n = 5)" in done.out
    assert "a ranking is not a JSON object with id, technique and files" in done.out
    assert "ranked by ochiai" in (tmp_path / "out" / "report.html").read_text()
    # A row that holds neither bugs nor the study's numbers says nothing.
    table = (tmp_path / "out" / "tables" / "systems.csv").read_text()
    assert "bluir,traditional," in table
    assert "bm25,traditional," not in table
    assert list((tmp_path / "cache" / "epochzero" / "study").glob("owner+tool.*.json"))
    again = run(*told, "-f", "json", "--sample", "2")
    assert json.loads(again.out)["bugs"] == 2


def test_a_baseline_is_the_other_kind_of_system(
    run: Command, project: Project, tmp_path: Path
) -> None:
    other = Project(tmp_path / "clones", "owner+web")
    reports = project.reports(tmp_path / "a.jsonl")
    baseline = other.reports(tmp_path / "b.jsonl")
    done = run("study", "localization", "--reports", reports, "--baseline-reports", baseline, "--repos",
               project.clone.parent, "--techniques", "bm25", "--titles-only", "-o", tmp_path / "out",
               "-f", "json")  # fmt: skip
    assert done.code == 0
    of = json.loads(done.out)["techniques"]["bm25"]
    assert {system: one["bugs"] for system, one in of.items()} == {
        "deep_learning": 5,
        "traditional": 5,
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"--techniques": "nothing"}, "unknown technique 'nothing'"),
        ({"--repos": "/nowhere"}, "/nowhere cannot be read"),
        ({"--reports": "/nowhere.jsonl"}, "/nowhere.jsonl cannot be read"),
        ({"--out": "/proc/none"}, "cannot be written"),
    ],
)
def test_bad_input_is_told_and_ends_with_2(
    run: Command, project: Project, tmp_path: Path, change: dict[str, str], said: str
) -> None:
    options = {"--reports": project.reports(tmp_path / "r.jsonl"), "--repos": project.clone.parent,
               "--out": tmp_path / "out", **change}  # fmt: skip
    done = run("study", "localization", *(word for pair in options.items() for word in pair))
    assert done.code == 2
    assert said in done.err
