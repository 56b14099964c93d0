"""The job's data against their profile: what differs is told where the job reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from epochzero.check import CheckResult, DataSet, SourceLocation, check
from epochzero.check import data as checked_data
from epochzero.data import profile
from epochzero.errors import InputError

TRAIN = """\
import csv

def main():
    with open("data/train.csv") as file:
        rows = list(csv.DictReader(file))

main()
"""
SETTINGS = """\
[[tool.epochzero.check.data]]
path = "data/train.csv"
profile = "train.profile.json"
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "train.py").write_text(TRAIN)
    lines = [f"{n},{'cat' if n % 3 else 'dog'}" for n in range(300)]
    (tmp_path / "data/train.csv").write_text("\n".join(["size,label", *lines, ""]))
    known = profile(tmp_path / "data/train.csv").to_dict()
    (tmp_path / "train.profile.json").write_text(json.dumps(known))
    (tmp_path / "pyproject.toml").write_text(SETTINGS)
    return tmp_path


def checked(folder: Path, data: tuple[DataSet, ...] = ()) -> CheckResult:
    return check(["python", "train.py"], folder=folder, select=["data-differs"], data=data)


def test_data_that_conform_give_no_finding(job: Path) -> None:
    found = checked(job)
    assert (found.findings, found.rules) == ((), ("data-differs",))


def test_what_differs_is_told_where_the_job_reads_it(job: Path) -> None:
    file = job / "data/train.csv"
    file.write_text(file.read_text().replace("\n200,cat", "\n200,owl"))
    (finding,) = checked(job).findings
    assert (finding.severity, finding.category) == ("error", "corrupt_data")
    assert (finding.place.path, finding.place.line) == ("train.py", 4)
    assert finding.message.startswith(
        "data/train.csv:201, column 'label': 'owl' is not in the profile"
    )


def test_data_that_no_line_is_known_to_read_are_told_of_at_the_settings(job: Path) -> None:
    (job / "train.py").write_text("import sys\n")
    (job / "data/train.csv").write_text("size\n1\n")
    assert {finding.place.path for finding in checked(job).findings} == {"pyproject.toml"}


def test_an_argument_takes_the_place_of_the_settings(job: Path) -> None:
    (job / "other.csv").write_text("size,label\n1,owl\n")
    given = DataSet("other.csv", "train.profile.json", SourceLocation("<command>"))
    kinds = [finding.message for finding in checked(job, (given,)).findings]
    assert kinds[0].startswith("other.csv:1, column 'label': 'owl' is not in the profile")


def test_data_that_are_not_here_are_unknown(job: Path) -> None:
    (job / "data/train.csv").unlink()
    found = checked(job)
    assert not found.findings
    assert "the data are not on this machine" in [unknown.reason for unknown in found.unknowns]


def test_a_profile_that_cannot_be_used_is_refused(job: Path) -> None:
    (job / "train.profile.json").write_text("{}")
    with pytest.raises(InputError, match="is not a profile"):
        checked(job)


def test_of_large_data_only_the_beginning_is_read(
    job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = job / "data/train.csv"
    header, *lines = file.read_text().splitlines()
    file.write_text("\n".join([header, *sorted(lines, key=lambda line: line[-3:]), ""]))
    monkeypatch.setattr(checked_data, "MOST_RECORDS", 100)
    monkeypatch.setattr("epochzero.data.formats.BATCH", 100)
    found = checked(job)
    assert not found.findings  # the classes of a part have other shares
    assert "train.csv: only the beginning was read" in [one.reason for one in found.unknowns]


@pytest.mark.parametrize(
    "text",
    [
        "data = 3",
        'data = ["a.csv"]',
        'data = [{path = "a.csv"}]',
        "data = [{path = 1, profile = 2}]",
    ],
)
def test_settings_of_another_form_are_refused(job: Path, text: str) -> None:
    (job / "pyproject.toml").write_text(f"[tool.epochzero.check]\n{text}\n")
    with pytest.raises(InputError, match="each with a path and a profile"):
        checked(job)
