"""Tasks that srun starts are no children of the run: what Slurm and srun's messages tell of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochzero.run.observers.lost_tasks import LostTaskWatcher
from epochzero.run.records.model import JobEvent
from epochzero.run.scheduler.slurm import memory_of_tasks
from tests.run.observers.test_slow_ranks import Ticking

# As sstat(1) of Slurm 22.05 prints it with --parsable2 --noheader.
SSTAT = (
    "7.batch|cpu=00:00:00,energy=0,fs/disk=2332,mem=6064K,pages=0,vmem=222M\n"
    "7.0|cpu=00:00:04,energy=0,fs/disk=87,mem=5120K,pages=1,vmem=9M\n"
    "7.1|cpu=00:00:09,energy=0,fs/disk=87,mem=1.50G,pages=1,vmem=9M\n"
)


def test_memory_of_tasks_is_what_sstat_gathers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sstat").write_text(f"#!/bin/sh\ncat <<'END'\n{SSTAT}END\n")
    (tmp_path / "sstat").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert memory_of_tasks({"SLURM_JOB_ID": "7"}) == 5120 * 1024 + int(1.5 * 1024**3)
    assert memory_of_tasks({}) == 0


def reported(*output: bytes, seconds: float) -> list[JobEvent]:
    clock, watcher = Ticking(), LostTaskWatcher()
    watcher.started(1, Path(), clock)
    for data in output:
        assert not list(watcher.output("stderr", data))
    clock.seconds = seconds
    return [event for event in (*watcher.tick(), *watcher.tick()) if isinstance(event, JobEvent)]


def test_a_task_that_fails_while_others_go_on_is_reported_once() -> None:
    (event,) = reported(b"srun: error: n1: task 3: Exited w", b"ith exit code 1\n", seconds=60)
    assert event.rank == 3
    assert event.text.startswith("task 3 on n1: exited with exit code 1, and srun lets the other")


def test_a_job_that_ends_with_its_task_has_no_report() -> None:
    assert not reported(b"srun: error: n1: task 3: Exited with exit code 1\n", seconds=5)
    assert not reported(b"step 3 loss 0.1\n", seconds=60)
