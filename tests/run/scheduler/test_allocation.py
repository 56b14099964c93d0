"""What Slurm says of an allocation, as `scontrol show job` of Slurm 22.05 printed it, and what a run makes of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime

import pytest

from epochzero.run.scheduler import allocation_of
from epochzero.run.scheduler.slurm import parse_job
from tests.run.conftest import Kept

NOW = datetime(2026, 11, 23, 16, 0, 0)
PRINTED = {
    "JobState": "RUNNING", "Reason": "None", "Restarts": "0", "ExitCode": "0:0",
    "StartTime": "2026-11-23T15:58:41", "EndTime": "2026-11-23T16:58:41", "PreemptTime": "None",
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "restarts", "state"),
    [
        ({}, 0, "RUNNING"),
        # scancel: the first five seconds, and afterwards.
        ({"JobState": "COMPLETING", "EndTime": "2026-11-23T15:58:48"}, 0, "CANCELLED"),
        ({"JobState": "CANCELLED", "ExitCode": "0:9"}, 0, "CANCELLED"),
        ({"JobState": "COMPLETING", "Reason": "TimeLimit"}, 0, "TIMEOUT"),
        # A job of a higher partition came; Slurm counts the restart at once.
        ({"JobState": "COMPLETING", "Restarts": "1"}, 0, "REQUEUED"),
        ({"JobState": "PENDING", "Reason": "BeginTime", "Restarts": "1"}, 0, "REQUEUED"),
        ({"JobState": "RUNNING", "Restarts": "1"}, 0, "REQUEUED"),
        ({"JobState": "RUNNING", "Restarts": "1"}, 1, "RUNNING"),
        ({"JobState": "CANCELLED,COMPLETING"}, 0, "CANCELLED"),
        ({"JobState": "COMPLETING", "Reason": "NodeDown"}, 0, "NODE_FAIL"),
    ],
)
def test_a_state_of_slurm(changed: dict[str, str], restarts: int, state: str) -> None:
    found = parse_job({**PRINTED, **changed}, NOW, restarts=restarts)
    assert found.state == state
    assert found.runs is (state == "RUNNING")
    assert found.cancelled is (state == "CANCELLED")


def test_the_time_that_is_left() -> None:
    assert parse_job(PRINTED, NOW).seconds_left == 58 * 60 + 41
    assert parse_job({**PRINTED, "EndTime": "Unknown"}, NOW).seconds_left is None


def test_a_job_that_no_scheduler_knows() -> None:
    assert allocation_of({}) is None
    assert allocation_of({"SLURM_JOB_ID": "no such job"}) is None


WAITS = "import time; print('ready', flush=True); time.sleep(60)"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_job_is_not_started_again_where_its_scheduler_ended_it(
    start: Callable[..., subprocess.Popen[bytes]], kept: Kept, number: signal.Signals
) -> None:
    variables = {**os.environ, "SLURM_JOB_ID": "424242", "PATH": "/nonexistent"}
    process = start("--retries", "auto", "--", sys.executable, "-c", WAITS, env=variables)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    told = process.stderr.read()
    assert process.wait() == 128 + number
    assert kept.ended.why == "scheduler"
    assert b"In a new allocation" in told
    assert b"starting again" not in told


def test_ctrl_c_is_an_interruption_by_the_user(
    start: Callable[..., subprocess.Popen[bytes]], kept: Kept
) -> None:
    process = start("--", sys.executable, "-c", WAITS)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    told = process.stderr.read()
    assert b"python3 was interrupted by the user after" in told
    assert b"FAILED" not in told
    assert b"EVIDENCE" not in told
    assert kept.ended.why == "user"
