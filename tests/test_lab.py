"""Real failing jobs: what is found in their recorded logs must be what their job.toml demands."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from epochzero.diagnose import find_facts
from epochzero.logs.source import find_logs
from tests.catalogs import every

if TYPE_CHECKING:
    from collections.abc import Callable

    from epochzero.diagnose import Diagnoser, Diagnosis

LAB = Path(__file__).resolve().parent.parent / "lab"
JOBS = sorted(path.parent.name for path in (LAB / "jobs").glob("*/job.toml"))

UNTOLD = ("dataset_mount_vanishes", "time_limit_with_checkpoints")
"""Jobs that can pass and whose last line is that of jobs that cannot."""

_DIAGNOSES: dict[str, Diagnosis] = {}


@cache
def described(job: str) -> dict[str, Any]:
    return tomllib.loads((LAB / "jobs" / job / "job.toml").read_text())


def expected(job: str) -> dict[str, Any]:
    expect: dict[str, Any] = described(job)["expect"]
    return expect


def diagnosed(job: str, diagnoser: Diagnoser) -> Diagnosis:
    """The diagnosis of a recorded job, with the facts beside its log."""
    folder = LAB / "logs" / job
    assert folder.is_dir(), "not recorded: lab/record runs it"
    if job not in _DIAGNOSES:
        _DIAGNOSES[job] = diagnoser.diagnose(find_logs([folder]), find_facts([folder]))
    return _DIAGNOSES[job]


def jobs(*fields: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The jobs whose expectation has all the fields, without those that are only measured."""
    demanded = [job for job in JOBS if not described(job).get("held_out")]
    return every("job", [job for job in demanded if all(f in expected(job) for f in fields)])


@jobs("outcome")
def test_outcome(job: str, diagnoser: Diagnoser) -> None:
    found = diagnosed(job, diagnoser)
    assert found.outcome == expected(job)["outcome"], f"{found.category}: {found.root}"


@every("job", [job for job in JOBS if job.startswith("good_")])
def test_a_good_job_raises_no_alarm_by_its_log_alone(job: str, diagnoser: Diagnoser) -> None:
    found = diagnoser.diagnose(find_logs([LAB / "logs" / job]))
    assert found.outcome == "no_failure", f"{found.category}: {found.root}"


@jobs("category")
def test_category(job: str, diagnoser: Diagnoser) -> None:
    found = diagnosed(job, diagnoser)
    allowed = [expected(job)["category"], *expected(job).get("also", [])]
    assert found.category in allowed, f"by {found.signature or found.basis}: {found.root}"


@jobs("root_text", "root_file")
def test_root_line(job: str, diagnoser: Diagnoser) -> None:
    found = diagnosed(job, diagnoser)
    assert found.root is not None
    assert expected(job)["root_text"] in found.root.text
    # What the diagnosis says of the place must lead a person to that very line.
    (log,) = [log for log in find_logs([LAB / "logs" / job]) if log.name == found.root.file]
    lines = b"".join(block.data for block in log.blocks()).decode("utf-8", "replace").split("\n")
    assert found.root.line is not None
    assert found.root.text.strip() in _plain(lines[found.root.line - 1])


def _plain(line: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line).replace("\0", "")


@jobs("root_text", "root_file")
def test_root_file(job: str, diagnoser: Diagnoser) -> None:
    """The file named, or another that repeats the line (a launcher's copy)."""
    found = diagnosed(job, diagnoser)
    assert found.root is not None
    folder = LAB / "logs" / job
    holders = [
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and expected(job)["root_text"] in path.read_text(errors="replace")
    ]
    assert found.root.file in holders


@jobs("root_rank")
def test_root_rank(job: str, diagnoser: Diagnoser) -> None:
    found = diagnosed(job, diagnoser)
    assert found.root is not None
    assert found.root.rank == expected(job)["root_rank"]


@jobs("user_frame")
def test_user_frame(job: str, diagnoser: Diagnoser) -> None:
    found = diagnosed(job, diagnoser)
    frame = expected(job)["user_frame"]
    assert found.user_frame is not None
    assert Path(found.user_frame.file).name == Path(frame["file"]).name
    assert found.user_frame.line == frame["line"]
    if "function" in frame:
        assert found.user_frame.function == frame["function"]


@jobs("retry")
def test_retry_is_never_the_opposite(job: str, diagnoser: Diagnoser) -> None:
    found = diagnosed(job, diagnoser)
    if job in UNTOLD:
        pytest.xfail("its log does not tell it from one that fails again")
    opposite = {"fails_again": "may_succeed", "may_succeed": "fails_again"}
    assert found.retry != opposite.get(expected(job)["retry"]), found.retry_reason


def test_a_job_ends_well_when_its_cause_is_gone() -> None:
    command = [sys.executable, LAB / "record", "--again", "manifest_half_written"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "manifest_half_written: ends well\n"), done.stderr


@every("job", JOBS)
def test_what_failed_comes_with_advice(job: str, diagnoser: Diagnoser) -> None:
    found = diagnosed(job, diagnoser)
    if found.outcome == "no_failure":
        assert (found.root, found.fixes, found.cascade) == (None, (), ())
    else:
        assert found.fixes
        assert found.meaning
        assert 0 < found.confidence <= 1
        assert found.fingerprint
