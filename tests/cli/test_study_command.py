"""``epochzero study``, over files, folders and a store."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.store.jobs import Runs, whole

if TYPE_CHECKING:
    from conftest import Command

LOG = (
    "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\nKeyError: 'lr'\n"
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EPOCHZERO_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("EPOCHZERO_STORE", raising=False)
    return tmp_path / "home"


def test_a_file_becomes_a_report(run: Command, tmp_path: Path) -> None:
    record = {"id": "a", "log": LOG, "label": {"category": "key_not_found"}}
    (tmp_path / "f.jsonl").write_text(json.dumps(record) + "\n{}\n")
    done = run("study", "failures", tmp_path / "f.jsonl", "--out", tmp_path / "out")
    assert done.code == 0
    assert "1, of 2 records; 1 could not be used" in done.out
    assert "1: has neither a log nor a category" in done.out
    assert "Cost: no GPU times are known" in done.out
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Zhang et al. 2020" in page
    assert "Left out: has neither a log nor a category" in page


def test_the_last_days_of_the_store_as_json(run: Command, home: Path, tmp_path: Path) -> None:
    runs = Runs(home / "runs")
    runs.write(whole("old", name="old"))
    runs.write(whole("new", name="new", time=time.time() - 3600))
    done = run("study", "failures", "last 30 days", "-o", tmp_path / "out", "-f", "json")
    assert done.code == 0
    summary = json.loads(done.out)
    assert summary["failures"] == 1
    assert summary["gpu_hours"] == 4.0
    assert summary["categories"]["key_not_found"]["count"] == 1
    assert all((tmp_path / "out" / name).is_file() for name in summary["files"])
    file = run("study", "failures", home / "epochzero.db", "-o", tmp_path / "all", "-f", "json")
    assert json.loads(file.out)["failures"] == 2


def test_nothing_failed_is_an_answer_too(run: Command, tmp_path: Path) -> None:
    done = run("study", "failures", "last 7 days", "-o", tmp_path / "out")
    assert done.code == 0
    assert "0, of 0 records" in done.out
    assert "is a failure" in (tmp_path / "out" / "report.md").read_text()


@pytest.mark.parametrize("source", ["nothing.jsonl", "last thirty days", "sqlite:///no/such/x.db"])
def test_a_source_that_is_none_is_told_of(run: Command, tmp_path: Path, source: str) -> None:
    done = run("study", "failures", source, "-o", tmp_path / "out")
    assert done.code == 2
    assert source.rpartition("/")[2] in done.err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_told_of_first(run: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run("study", "failures", "nothing.jsonl", "-o", tmp_path / "file" / "out")
    assert done.code == 2
    assert "cannot be written" in done.err


def test_a_fleet_on_paper(run: Command, tmp_path: Path) -> None:
    size = ("--jobs-per-day", "100..1000", "--days", "1")
    done = run("study", "simulate", *size, "--out", tmp_path / "out")
    assert done.code == 0
    assert "1,000 jobs a day" in done.out
    page = (tmp_path / "out" / "report.html").read_text()
    assert "ATC 2019" in page
    assert (tmp_path / "out" / "figures" / "sensitivity-figure.svg").is_file()
    as_json = run("study", "simulate", *size, "-o", tmp_path / "out", "-f", "json")
    fleets = json.loads(as_json.out)["fleets"]
    assert [one["jobs_per_day"] for one in fleets] == [100, 1000]
    assert fleets[1]["saved"]["all"]["share"]["p5"] > 0


@pytest.mark.parametrize("size", ["0", "-1", "many", "10..1", "1..", "99999999"])
def test_a_size_that_is_none_is_refused(run: Command, tmp_path: Path, size: str) -> None:
    done = run("study", "simulate", "--jobs-per-day", size, "--out", tmp_path / "out")
    assert done.code == 2
    assert "1000..100000" in done.err
    assert not (tmp_path / "out").exists()
