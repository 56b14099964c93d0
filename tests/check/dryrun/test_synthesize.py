"""Dry runs over data that are made after a profile, where the job's own are not there."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace

import pytest

from epochzero.check import CheckResult, DataSet, Limits, SourceLocation, Target, check
from epochzero.check.dryrun import synthesize
from epochzero.check.dryrun.findings import OUT_OF_TIME
from epochzero.check.dryrun.model import DryRun, ProvidedFiles
from epochzero.check.dryrun.run import dry_run
from epochzero.check.dryrun.synthesize import over_made_data
from epochzero.check.launch import read_job
from epochzero.data import profile
from epochzero.errors import InputError

HERE = Target(name="here", here=True, gpus=())
SCRIPT = """\
    import csv

    def read(path):
        with open(path, encoding="utf-8", errors="replace") as file:
            return [row for row in csv.DictReader(file) if row["label"]]

    train = read("data/train.csv")
    validation = read("data/validation.csv")
    mean = sum(len(row["size"]) for row in train) / max(1, len(train))
    dogs = [row for row in validation if row["label"] == "dog"]
    recall = sum(len(row["size"]) > mean for row in dogs) / len(dogs)
    print(len(train), recall)
"""
DATA = tuple(
    DataSet(f"data/{name}.csv", f"{name}.profile.json", SourceLocation("pyproject.toml"))
    for name in ("train", "validation")
)


def profiles(folder: Path) -> None:
    for name in ("train", "validation"):
        file = folder / f"{name}.csv"
        lines = [f"{n}.5,{'cat' if n % 3 else 'dog'}" for n in range(100)]
        file.write_text("\n".join(["size,label", *lines, ""]))
        (folder / f"{name}.profile.json").write_text(json.dumps(profile(file).to_dict()))
        file.unlink()


def made(folder: Path, script: str) -> CheckResult:
    (folder / "train.py").write_text(dedent(script))
    profiles(folder)
    return check(
        [sys.executable, "train.py"],
        HERE,
        folder=folder,
        environment=dict(os.environ),
        select=["dry-run-failed"],
        data=DATA,
        dry=Limits(seconds=60),
        synthesize=True,
    )


def test_a_corner_case_that_fails_is_named_with_its_data_set(tmp_path: Path) -> None:
    found = made(tmp_path, SCRIPT)
    (finding,) = found.findings
    assert (finding.severity, finding.category, finding.place.line) == (
        "warning", "division_by_zero", 11,
    )  # fmt: skip
    assert "data/validation.csv generated as empty (no records)" in finding.message
    assert "data/validation.csv generated as single-class" in finding.message
    assert "data/train.csv" not in finding.message
    assert not (tmp_path / "data").exists()
    assert found.dry[0].effects.written == ()


def test_what_fails_with_regular_data_is_told_without_corner_cases(tmp_path: Path) -> None:
    found = made(tmp_path, SCRIPT.replace('row["size"]) for', 'row["weight"]) for'))
    (finding,) = found.findings
    assert (finding.severity, finding.category) == ("warning", "key_not_found")
    assert finding.message.endswith(
        "The data were generated from a profile, which may be the cause."
    )


def test_what_no_data_would_prevent_stays_an_error(tmp_path: Path) -> None:
    (finding,) = made(tmp_path, SCRIPT.replace("max(1,", "max(one,")).findings
    assert (finding.severity, finding.category) == ("error", "undefined_variable")


def test_corner_cases_for_which_there_is_no_time_are_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Half a minute passes each time that the clock is read.
    clock = SimpleNamespace(monotonic=count(0, 30).__next__)
    monkeypatch.setattr(synthesize, "time", clock)
    found = made(tmp_path, SCRIPT)
    assert OUT_OF_TIME in [unknown.reason for unknown in found.unknowns]


def test_data_that_are_there_are_left_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("train", "validation"):
        (tmp_path / f"data/{name}.csv").write_text("size,label\n1,dog\n")
    found = made(tmp_path, SCRIPT)
    assert not found.findings
    assert not [one for one in found.dry[0].assumptions if "is generated from" in one.what]


def test_without_a_profile_nothing_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    with pytest.raises(InputError, match="name their paths and profiles"):
        check(["python", "train.py"], HERE, folder=tmp_path, dry=Limits(), synthesize=True)


def test_that_made_data_are_absent_is_unknown_and_no_error(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(open('data/train.csv').read())\nopen('other.csv')\n")
    profiles(tmp_path)
    found = check(
        [sys.executable, "train.py"],
        HERE,
        folder=tmp_path,
        environment=dict(os.environ),
        select=["path-not-found", "folder-missing"],
        data=DATA,
        dry=Limits(seconds=60),
        synthesize=True,
    )
    assert [one.place.line for one in found.findings] == [2]
    (unknown,) = (one for one in found.unknowns if one.what == "whether data/train.csv exists")
    assert unknown.place.line == 1
    assert "generated them from train.profile.json" in unknown.reason


def test_a_value_that_fits_is_looked_for_over_regular_data_only(tmp_path: Path) -> None:
    profiles(tmp_path)
    (tmp_path / "train.py").write_text(dedent(SCRIPT).replace("data/train", "data/validation"))
    (job,) = read_job((sys.executable, "train.py"), tmp_path, {}).jobs
    regular: list[bool] = []

    def run(made: Sequence[ProvidedFiles], is_regular: bool) -> DryRun:
        regular.append(is_regular)
        return dry_run(job, HERE, Limits(seconds=60), environment=dict(os.environ), made=made)

    over_made_data(run, DATA[1:], tmp_path, 60.0)
    assert regular.count(True) == 1
    assert regular.count(False) >= 1
