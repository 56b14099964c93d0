"""A retry is decided by what became of earlier ones."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from epochzero.run.retry.history import (
    NAME,
    EndedAttempt,
    Precedents,
    code_of,
    precedents,
    program_of,
    remember,
)
from tests.run.conftest import Kept

NOW = 1_800_000_000.0
FAILED = "2:aaaaaaaaaaaaaaaa"


def attempt(
    job: str,
    fingerprint: str = FAILED,
    *,
    ago: float = 3600.0,
    host: str = "node1",
    program: str = "p",
    storage: str = "",
    directory: str = "/jobs/a",
    code: str = "theirs",
    resource: str = "/data/set",
) -> EndedAttempt:
    """An attempt that failed, or passed if the fingerprint is empty."""
    return EndedAttempt(
        NOW - ago,
        job,
        program,
        host,
        not fingerprint,
        fingerprint,
        storage,
        directory,
        0,
        code,
        resource,
    )


def known(home: Path, *attempts: EndedAttempt) -> Precedents:
    """What these attempts tell about one that fails now."""
    for earlier in attempts:
        remember(home, earlier)
    return precedents(
        home, attempt("now", ago=0.0, storage="server:/export", directory="/jobs/now", code="own")
    )


def test_a_retry_that_passed_and_one_that_did_not_are_counted(tmp_path: Path) -> None:
    found = known(tmp_path, attempt("a"), attempt("a", ""), attempt("b"), attempt("b"))

    assert (found.passed, found.repeated) == (1, 1)


def test_another_failure_after_it_means_that_it_was_passed(tmp_path: Path) -> None:
    assert known(tmp_path, attempt("a"), attempt("a", "2:bbbbbbbbbbbbbbbb")).passed == 1


def test_jobs_that_were_not_retried_tell_nothing_of_retries(tmp_path: Path) -> None:
    found = known(tmp_path, attempt("a"), attempt("b", ""), attempt("c"))

    assert (found.passed, found.repeated) == (0, 0)


def test_earlier_attempts_of_the_job_count_until_it_came_farther(tmp_path: Path) -> None:
    failed = attempt("now", ago=0.0)
    for earlier in (attempt("now"), attempt("now", "2:b"), attempt("now"), attempt("a"), failed):
        assert precedents(tmp_path, replace(failed, job="other")).earlier == 0
        remember(tmp_path, earlier)

    assert precedents(tmp_path, failed).earlier == 2
    assert precedents(tmp_path, replace(failed, step=7)).earlier == 0


def test_a_weak_fingerprint_has_no_precedents(tmp_path: Path) -> None:
    weak = "2w:aaaaaaaaaaaaaaaa"
    for earlier in (attempt("a", weak), attempt("a", "")):
        remember(tmp_path, earlier)

    assert precedents(tmp_path, attempt("now", weak)).passed == 0


@pytest.mark.parametrize(
    ("other", "counts"),
    [
        (attempt("a", ago=60.0), True),
        (attempt("a", ago=3600.0), False),
        (attempt("a", ago=60.0, host="node2"), False),
        (attempt("a", ago=60.0, host="node2", storage="server:/export"), True),
        (attempt("a", ago=60.0, host="node2", storage="server:/home"), False),
        (attempt("a", ago=60.0, resource="storage_full"), False),
        (attempt("a", ago=60.0, resource=""), False),
        (attempt("a", ago=60.0, code="own"), False),
        (attempt("now", ago=60.0), False),
        (attempt("a", ago=60.0, directory="/jobs/now"), False),
    ],
)
def test_neighbours_failed_here_and_now_because_of_the_same_resource(
    tmp_path: Path, other: EndedAttempt, counts: bool
) -> None:
    assert bool(known(tmp_path, other).neighbours) is counts


def test_a_program_is_its_words_and_the_files_among_them(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print(1)")
    command = ("python", "train.py", "--lr", "0.1")
    first = program_of(command, tmp_path)
    assert program_of(command, tmp_path) == first
    assert program_of((*command[:-1], "0.2"), tmp_path) != first
    script.write_text("print(2)")
    assert program_of(command, tmp_path) != first


def test_failures_that_are_about_nothing_outside_have_no_neighbours(tmp_path: Path) -> None:
    for job in "abcd":
        remember(tmp_path, attempt(job, ago=60.0, resource=""))

    failed = attempt("now", ago=0.0, directory="/jobs/now", code="own", resource="")
    assert precedents(tmp_path, failed).neighbours == 0


def test_a_sweep_runs_one_code(tmp_path: Path) -> None:
    """Other options, another directory, the same defect."""
    codes = set()
    for rate, folder in (("0.1", tmp_path / "a"), ("0.2", tmp_path / "b")):
        folder.mkdir()
        (folder / "train.py").write_text("print(1)")
        codes.add(code_of(("python", "train.py", "--lr", rate), folder))
    assert len(codes) == 1
    (folder / "train.py").write_text("print(2)")
    assert code_of(("python", "train.py", "--lr", "0.1"), folder) not in codes
    modules = (("python", "-m", "train", "--lr", "0.1"), ("python", "-m", "train", "--lr", "0.2"))
    assert len({code_of(command, folder) for command in modules}) == 1


def test_the_same_program_that_completed_is_known(tmp_path: Path) -> None:
    assert known(tmp_path, attempt("a", "", program="p")).completed
    assert not known(tmp_path / "none").completed


def test_lines_that_are_no_attempts_are_skipped(tmp_path: Path) -> None:
    remember(tmp_path, attempt("a"))
    with (tmp_path / NAME).open("a") as file:
        file.write('{"time": 1}\n[]\nnot json\n' + json.dumps({"time": "x", "job": 1}) + "\n")
        newer = asdict(attempt("a", "")) | {"field_of_another_version": 1}
        file.write(json.dumps(newer) + "\n")

    assert precedents(tmp_path, attempt("now")).passed == 1


def test_a_home_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    assert remember(tmp_path / "missing" / "home", attempt("a")) == Precedents()


JOB = """
import pathlib
there = pathlib.Path("there")
if not there.exists():
    there.write_text("")
    raise ValueError("cannot parse the header of shard 7")
"""


@pytest.mark.parametrize("foreseen", [True, False])
def test_what_a_check_reports_at_the_same_line_is_not_raised_by_neighbours(
    run: Callable[..., subprocess.CompletedProcess[bytes]],
    tmp_path: Path,
    kept: Kept,
    foreseen: bool,
) -> None:
    target = tmp_path / "gone" / "out.txt"
    job = tmp_path / "job"
    job.mkdir()
    (job / "where.txt").write_text(str(target))
    where = repr(str(target)) if foreseen else "open('where.txt').read()"
    (job / "train.py").write_text(f"open({where}, 'w').write('done')\n")
    kept.home.mkdir()
    for name in ("a", "b", "c"):
        shared = attempt(name, host=socket.gethostname(), resource=str(target.parent))
        remember(kept.home, replace(shared, time=time.time()))

    words = ("--advice-file", tmp_path / "advice.json", "--", sys.executable, "train.py")
    done = run(*map(str, words), cwd=job)

    raised = {"neighbours_failed", "many_neighbours_failed"}
    evidence = json.loads((tmp_path / "advice.json").read_text())["evidence"]
    assert raised.intersection(evidence) == (set() if foreseen else raised)
    assert (b"another program failed" in done.stderr) is not foreseen


POLICY = """
title = "Retries what has passed before."
[[rules]]
title = "has passed"
when = { evidence = ["passed_before"], retry = ["fails_again"] }
retries = 1
reason = "It has passed before."
[[rules]]
title = "all else"
retries = 0
reason = "It has not passed before."
"""


def test_a_failure_that_once_passed_is_retried_in_the_next_job(
    run: Callable[..., subprocess.CompletedProcess[bytes]], tmp_path: Path, kept: Kept
) -> None:
    """Of the first job it is not known yet, and it is retried whatever failed."""
    (tmp_path / "train.py").write_text(JOB)
    (tmp_path / "policy.toml").write_text(POLICY)
    command = ("--policy", "policy.toml", "--", sys.executable, "train.py")
    unknown = run(*command, cwd=tmp_path)
    (tmp_path / "there").unlink()
    run("--retries", "1", "--", sys.executable, "train.py", cwd=tmp_path)
    (tmp_path / "there").unlink()

    again = run("--retries", "auto", *command, cwd=tmp_path)

    assert b"It has not passed before." in unknown.stderr
    assert b"It has passed before." in again.stderr
    assert kept.ended.exit_code == 0
