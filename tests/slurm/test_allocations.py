"""Jobs in a real Slurm: who ended them, and that nothing is started again in an allocation that is over.

Started by `make test-slurm`, which needs root and Debian's packages slurm-wlm and munge.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from epochzero.run.records.journal import NAME, read_journal
from epochzero.run.records.model import End, JobEvent, Sample, Start

if "TEST_SLURM" not in os.environ:
    pytest.skip("needs a Slurm: make test-slurm", allow_module_level=True)

JOB = f"{sys.executable} -c \"import time; print('ready', flush=True); time.sleep(600)\""
RUN = f"exec {sys.executable} -m epochzero run --retries auto -- {JOB}"


class Submitted:
    """A batch job."""

    def __init__(self, folder: Path, script: str, *options: str) -> None:
        self.folder = folder
        self.out = folder / "out.txt"
        batch = folder / "batch.sh"
        batch.write_text(f"#!/bin/bash\n{script}\n")
        words = ("sbatch", "--parsable", "--open-mode=append", f"--output={self.out}", *options)
        # Tests of the filter and of the wrapper switch them on.
        off = {"EPOCHZERO_CHECK": "off", "EPOCHZERO_WRAP": "off"}
        environment = {**off, **os.environ, "EPOCHZERO_HOME": str(folder / "home")}
        done = subprocess.run(
            [*words, str(batch)], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        self.number = done.stdout.strip()

    @property
    def printed(self) -> str:
        return self.out.read_text() if self.out.exists() else ""

    @property
    def ends(self) -> list[End]:
        journals = sorted((self.folder / "home").glob(f"runs/*/*/{NAME}"))
        records = (record for journal in journals for _, record in read_journal(journal))
        return [record for record in records if isinstance(record, End)]

    def wait_for(self, text: str) -> None:
        self.until(lambda: text in self.printed)

    def until(self, what: Callable[[], bool], seconds: float = 150.0) -> None:
        end = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < end, self.printed
            time.sleep(0.5)

    def gone(self) -> bool:
        squeue = ["squeue", "--noheader", "--states=running,completing", f"--jobs={self.number}"]
        return not subprocess.run(squeue, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def submit(tmp_path: Path) -> Callable[..., Submitted]:
    return lambda script, *options: Submitted(tmp_path, script, *options)


def started_once(job: Submitted) -> End:
    """The only end of a job in an allocation that is over."""
    job.until(lambda: bool(job.ends) and job.gone())
    assert job.printed.count("ready") == 1, job.printed
    (ended,) = job.ends
    return ended


def recorded(job: Submitted) -> list[tuple[int, str, int]]:
    """What the epilog has recorded of a job: attempt, state and exit code of each."""
    home = Path(os.environ["SLURM_CONF"]).parent / "home"
    found = []
    for journal in sorted(home.glob(f"runs/*/*/{NAME}")):
        records = [record for _, record in read_journal(journal)]
        started = next(record for record in records if isinstance(record, Start))
        if started.scheduler.get("SLURM_JOB_ID") == job.number:
            ended = next(record for record in records if isinstance(record, End))
            (said,) = [r.text for r in records if isinstance(r, JobEvent) and r.what == "slurm"]
            found.append((started.attempt, said.rpartition(" ")[2], ended.exit_code))
    return found


@pytest.mark.parametrize(
    ("script", "state", "code"),
    [("sleep 1", "COMPLETED", 0), ("exit 3", "FAILED", 3), ("kill -SEGV $$", "FAILED", 139)],
)
def test_the_epilog_records_how_a_job_ended(
    submit: Callable[..., Submitted], script: str, state: str, code: int
) -> None:
    job = submit(script)
    job.until(lambda: bool(recorded(job)))
    assert recorded(job) == [(1, state, code)]


def test_the_epilog_records_a_job_that_was_cancelled(submit: Callable[..., Submitted]) -> None:
    job = submit("echo ready; sleep 600")
    job.wait_for("ready")
    subprocess.run(["scancel", job.number], check=True)
    job.until(lambda: bool(recorded(job)))
    assert recorded(job) == [(1, "CANCELLED", 143)]


def test_the_epilog_records_a_requeued_job_and_its_end(submit: Callable[..., Submitted]) -> None:
    job = submit("echo ready; [ $SLURM_RESTART_COUNT ] || sleep 600")
    job.wait_for("ready")
    subprocess.run(["scontrol", "requeue", job.number], check=True)
    job.until(lambda: len(recorded(job)) == 2, 400)
    (first, state, _), last = recorded(job)
    assert (first, state) == (1, "REQUEUED")
    assert last == (2, "COMPLETED", 0)


@pytest.mark.parametrize("script", [RUN, RUN.removeprefix("exec ")], ids=["exec", "below a shell"])
def test_scancel(submit: Callable[..., Submitted], script: str) -> None:
    job = submit(script)
    job.wait_for("ready")
    subprocess.run(["scancel", job.number], check=True)
    ended = started_once(job)
    assert (ended.why, ended.state) == ("user", "CANCELLED")
    job.wait_for("was cancelled (CANCELLED in the scheduler)")


def test_a_signal_of_a_person_early_in_the_allocation(submit: Callable[..., Submitted]) -> None:
    job = submit(RUN, "--time=60")
    job.wait_for("ready")
    subprocess.run(["scancel", "--batch", "--signal=USR1", job.number], check=True)
    assert started_once(job).why == "user"


def test_a_warning_before_the_time_limit(submit: Callable[..., Submitted]) -> None:
    job = submit(RUN, "--time=2", "--signal=B:USR1@110")
    ended = started_once(job)
    assert (ended.exit_code, ended.why, ended.state) == (138, "scheduler", "SIGNALED")
    job.wait_for("Asked to exit by the scheduler")


def test_a_batch_script_that_is_ended_alone(submit: Callable[..., Submitted]) -> None:
    job = submit(RUN.removeprefix("exec ") + "; true", "--time=60")
    job.wait_for("ready")
    subprocess.run(["scancel", "--batch", "--signal=USR1", job.number], check=True)
    ended = started_once(job)
    assert (ended.why, ended.state) == ("scheduler", "FAILED")


def test_the_time_limit(submit: Callable[..., Submitted]) -> None:
    ended = started_once(submit(RUN, "--time=1"))
    assert (ended.why, ended.state) == ("scheduler", "TIMEOUT")


def test_a_preemption_with_requeue(submit: Callable[..., Submitted], tmp_path: Path) -> None:
    job = submit(RUN, "--nodelist=n1")
    job.wait_for("ready")
    other = tmp_path / "other"
    other.mkdir()
    Submitted(other, "sleep 3", "--partition=high", "--nodelist=n1")
    ended = started_once(job)
    assert (ended.why, ended.state) == ("scheduler", "REQUEUED")
    job.wait_for("the scheduler has queued the job again")
    subprocess.run(["scancel", job.number], check=True)


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ("--nodes=1", ""),
        ("--nodes=4", "Requested node configuration is not available"),
        ("--partition=gpu", "invalid partition specified: gpu"),
    ],
)
def test_a_check_asks_the_cluster(tmp_path: Path, options: str, answer: str) -> None:
    (tmp_path / "job.sh").write_text(f"#!/bin/bash\n#SBATCH {options}\npython train.py\n")
    (tmp_path / "train.py").write_text("print(1)\n")
    command = (
        sys.executable,
        "-m",
        "epochzero",
        "check",
        "--format",
        "json",
        "--",
        "sbatch",
        "job.sh",
    )
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == bool(answer)
    assert answer in done.stdout
    assert ("partition low" in done.stdout) == bool(answer)


DIVIDES = f"srun --ntasks=1 {sys.executable} -c 'print(1/0)'"


def test_the_filter_refuses_a_job_with_errors(
    submit: Callable[..., Submitted], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EPOCHZERO_CHECK", "refuse")
    with pytest.raises(RuntimeError, match="division-by-zero"):
        submit(DIVIDES)
    monkeypatch.setenv("EPOCHZERO_CHECK", "warn")
    assert submit(DIVIDES).number.isdigit()


def test_the_task_prolog_wraps_srun(
    submit: Callable[..., Submitted], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EPOCHZERO_WRAP", "on")
    job = submit(DIVIDES + "; echo status $?")
    job.wait_for("status 1")
    assert "FAILED  Division by Zero" in job.printed


TASK = """
import os, time
if os.environ["SLURM_PROCID"] == "1":
    raise SystemExit(3)
memory = bytearray(150_000_000)
time.sleep(45)
"""


def test_tasks_of_srun_are_measured_and_a_lost_one_is_reported(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(TASK)
    tasks = f"srun --ntasks=2 --overcommit {sys.executable} {tmp_path}/task.py"
    run = f"exec {sys.executable} -m epochzero run -- {tasks}"
    job = Submitted(tmp_path, run, "--nodes=1", "--ntasks=1")
    job.wait_for("srun --kill-on-bad-exit=1")
    assert "exited with exit code 3, and srun lets the other tasks go on" in job.printed
    journals = sorted((tmp_path / "home").glob(f"runs/*/*/{NAME}"))

    def measured() -> bool:
        records = (record for path in journals for _, record in read_journal(path))
        return any(isinstance(r, Sample) and r.memory_bytes > 150_000_000 for r in records)

    job.until(measured)
