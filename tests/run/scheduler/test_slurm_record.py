"""Jobs that Slurm ran by itself; a program that answers as sacct(1) does stands for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from epochzero.errors import InputError
from epochzero.run.records.identity import attempt_folder
from epochzero.run.records.journal import NAME, Journal, read_journal
from epochzero.run.records.launch import launch_of
from epochzero.run.records.model import Conclusion, End, JobEvent, Output, Record, Start
from epochzero.run.scheduler.slurm_record import SlurmJob, record_job, slurm_jobs

START, END = "2026-05-01T12:00:00+0200", "2026-05-01T13:00:00+0200"
FIELDS = (
    "Account AllocTRES Cluster End ExitCode JobID JobIDRaw JobName NodeList Restarts Start State "
    "StdErr StdOut SubmitLine User WorkDir"
)
LOG = """\
step 1
Traceback (most recent call last):
  File "train.py", line 7, in <module>
    rate = config["lr"]
KeyError: 'lr'
"""
# Prints the fields that it is asked for, of the rows in the file; unknown fields are an error.
SACCT = """\
#!{python}
import json, sys
fields, rows = json.loads({data!r})
asked = next((w[9:].split(",") for w in sys.argv if w.startswith("--format=")), None)
if asked is None:
    print("\\n".join(f"{{a:18}} {{b:18}}" for a, b in zip(fields[::2], fields[1::2] + [""])))
elif set(asked) - set(fields):
    sys.exit("sacct: fatal: Invalid field requested")
for row in rows if asked else ():
    print("|".join(row.get(field, "") for field in asked))
"""
JOB = {
    "JobIDRaw": "4242", "JobID": "4242", "Cluster": "alps", "User": "ann", "State": "FAILED",
    "ExitCode": "1:0", "Start": START, "End": END, "NodeList": "node[07-08]", "Restarts": "0",
    "AllocTRES": "billing=8,cpu=8,gres/gpu=8,node=2", "JobName": "resnet",
    "SubmitLine": "sbatch --gres=gpu:4 job.sh",
}  # fmt: skip
BATCH = JOB | {"JobIDRaw": "4242.batch", "JobID": "4242.batch", "JobName": "batch", "WorkDir": ""}

Answer = Callable[..., Mapping[str, str]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the job ran."""
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "slurm-4242.out").write_text(LOG)
    return folder


@pytest.fixture
def sacct(tmp_path: Path, folder: Path) -> Answer:
    """Puts a program `sacct` on a path, and gives the environment with it."""
    import json
    import sys

    def answer(*rows: Mapping[str, str], fields: str = FIELDS, **variables: str) -> dict[str, str]:
        whole = [{"WorkDir": str(folder), **row} for row in rows]
        program = tmp_path / "bin" / "sacct"
        program.parent.mkdir(exist_ok=True)
        data = json.dumps([fields.split(), whole])
        program.write_text(SACCT.format(python=sys.executable, data=data))
        program.chmod(0o755)
        return {"PATH": f"{program.parent}:{os.environ['PATH']}", **variables}

    return answer


def records(folder: Path | None) -> dict[type[Record], Record]:
    assert folder is not None
    return {type(record): record for _, record in read_journal(folder / NAME)}


def trusted(job: SlurmJob, folder: Path) -> list[Path]:
    """The log of a job whose user this machine does not know."""
    return [path for path in job.logs if path.is_relative_to(folder) and path.is_file()]


def test_a_failed_job_is_kept_as_a_run_would_have_kept_it(
    sacct: Answer, folder: Path, home: Path
) -> None:
    (job,) = slurm_jobs("4242", sacct(JOB | {"StdOut": str(folder / "slurm-4242.out")}, BATCH))
    kept = records(record_job(job, home, logs=trusted(job, folder)))
    started, ended = kept[Start], kept[End]
    assert isinstance(started, Start)
    assert isinstance(ended, End)
    assert (started.name, started.user, started.host) == ("resnet", "ann", "node[07-08]")
    assert started.command == ("sbatch", "--gres=gpu:4", "job.sh")
    assert (started.gpus, started.launcher, started.folder) == (8, "slurm", str(folder))
    assert (ended.exit_code, ended.elapsed, ended.time - started.time) == (1, 3600, 3600)
    assert ended.why == ""
    output, concluded = kept[Output], kept[Conclusion]
    assert isinstance(output, Output)
    assert output.size == len(LOG)
    assert isinstance(concluded, Conclusion)
    assert concluded.diagnosis is not None
    assert concluded.diagnosis["category"] == "key_not_found"
    assert concluded.gpu_hours == 8.0


def test_a_job_is_kept_once(sacct: Answer, home: Path) -> None:
    (job,) = slurm_jobs("4242", sacct(JOB))
    assert record_job(job, home) is not None
    assert record_job(job, home) is None
    (again,) = slurm_jobs("4242", sacct(JOB | {"Restarts": "1"}))
    assert again.identity == job.identity
    second = record_job(again, home)
    assert second == attempt_folder(home, job.identity, 2)
    assert [path.name for path in home.iterdir()] == ["runs"]


def test_a_job_that_was_run_under_supervision_is_not_kept_again(sacct: Answer, home: Path) -> None:
    variables = {"SLURM_JOB_ID": "4242", "SLURM_CLUSTER_NAME": "alps"}
    launch = launch_of(variables, "train.py")
    journal = Journal(attempt_folder(home, launch.job, 1))
    journal.write(
        Start(launch.job, 1, "t", ("t",), "", "n", "ann", 1, 0.0, scheduler=launch.scheduler)
    )
    journal.close()
    (job,) = slurm_jobs("4242", sacct(JOB))
    assert job.identity != launch.job
    assert record_job(job, home) is None


@pytest.mark.parametrize(
    ("state", "code", "ended", "why"),
    [
        ("COMPLETED", "0:0", (0, None), ""),
        ("FAILED", "0:9", (137, 9), ""),
        ("TIMEOUT", "0:0", (1, None), "scheduler"),
        ("CANCELLED by 1000", "0:15", (143, 15), "user"),
        ("OUT_OF_MEMORY", "0:125", (1, None), ""),
        ("NODE_FAIL", "0:0", (1, None), "scheduler"),
    ],
)
def test_how_slurm_ended_a_job(
    sacct: Answer, home: Path, state: str, code: str, ended: tuple[int, int | None], why: str
) -> None:
    (job,) = slurm_jobs("4242", sacct(JOB | {"State": state, "ExitCode": code}))
    kept = records(record_job(job, home))
    record = kept[End]
    assert isinstance(record, End)
    assert ((record.exit_code, record.signal), record.why) == (ended, why)
    assert (Conclusion in kept) == (state != "COMPLETED")


def test_the_state_that_slurm_tells_decides_the_diagnosis(
    sacct: Answer, folder: Path, home: Path
) -> None:
    # Root does not read the log, since this machine does not know the user; anyone else does.
    (folder / "slurm-4242.out").write_text("step 1 loss 0.9\n")
    (job,) = slurm_jobs("4242", sacct(JOB | {"State": "OUT_OF_MEMORY", "ExitCode": "0:125"}))
    concluded = records(record_job(job, home))[Conclusion]
    assert isinstance(concluded, Conclusion)
    assert concluded.diagnosis is not None
    assert concluded.diagnosis["category"] == "cpu_out_of_memory"


def test_an_older_sacct_is_asked_for_what_it_has(sacct: Answer, folder: Path) -> None:
    old = "AllocTRES Cluster End ExitCode JobID JobIDRaw JobName NodeList Start State User WorkDir"
    (job,) = slurm_jobs("4242", sacct(JOB, fields=old))
    assert (job.command, job.attempt) == (("resnet",), 1)
    assert job.logs == (folder / "slurm-4242.out",)


def test_the_jobs_of_an_array_are_told_apart(sacct: Answer, folder: Path) -> None:
    rows = [JOB | {"JobIDRaw": f"42{n}", "JobID": f"4242_{n}"} for n in (50, 51)]
    jobs = slurm_jobs("4242", sacct(*rows))
    assert [job.number for job in jobs] == ["4250", "4251"]
    assert jobs[0].identity != jobs[1].identity
    assert jobs[1].logs == (folder / "slurm-4242_51.out",)


EPILOG = {
    "SLURM_JOB_ID": "4242", "SLURM_JOB_EXIT_CODE2": "2:0", "SLURM_CLUSTER_NAME": "alps",
    "SLURM_JOB_NAME": "resnet", "SLURM_JOB_END_TIME": "1777633200",
}  # fmt: skip


def test_an_epilog_knows_the_end_before_sacct_does(sacct: Answer) -> None:
    running = JOB | {"State": "RUNNING", "ExitCode": "0:0", "End": "Unknown"}
    (job,) = slurm_jobs("4242", sacct(running, **EPILOG))
    assert (job.facts.state, job.facts.exit_code, job.facts.end) == ("FAILED", 2, 1777633200)
    assert job.facts.gpus == 8
    with pytest.raises(InputError, match="has not ended: its state in Slurm is RUNNING"):
        slurm_jobs("4242", sacct(running))


def test_an_epilog_without_sacct_tells_what_it_knows(tmp_path: Path) -> None:
    (job,) = slurm_jobs("4242", {"PATH": str(tmp_path), **EPILOG})
    assert (job.number, job.name, job.facts.exit_code) == ("4242", "resnet", 2)
    with pytest.raises(InputError, match="sacct is not on PATH"):
        slurm_jobs("7", {"PATH": str(tmp_path), **EPILOG})


def test_an_unknown_job_and_a_sacct_that_fails_are_told(sacct: Answer, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Slurm has no record of job 7"):
        slurm_jobs("7", sacct())
    environment = sacct()
    (tmp_path / "bin" / "sacct").write_text("#!/bin/sh\necho no database >&2; exit 1\n")
    with pytest.raises(InputError, match="exit code 1: no database"):
        slurm_jobs("7", environment)


def test_a_log_that_is_not_there_or_not_the_users_is_left_out(
    sacct: Answer, home: Path, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    for number, log in (("1", "missing"), ("2", "pipe")):
        row = JOB | {"JobIDRaw": number, "StdOut": str(tmp_path / log)}
        (job,) = slurm_jobs(number, sacct(row))
        kept = records(record_job(job, home))
        event, output = kept[JobEvent], kept[Output]
        assert isinstance(event, JobEvent)
        assert isinstance(output, Output)
        assert event.details == {"no_log": str(tmp_path / log)}
        assert output.size == 0
    (job,) = slurm_jobs("3", sacct(JOB | {"JobIDRaw": "3"}))
    with pytest.raises(InputError, match="cannot be read"):
        record_job(job, home, logs=[tmp_path / "missing"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads what others may not")
def test_root_reads_no_file_of_another_for_a_user(
    sacct: Answer, home: Path, folder: Path, tmp_path: Path
) -> None:
    (folder / "slurm-4242.out").unlink()
    (folder / "slurm-4242.out").symlink_to("/etc/passwd")
    (job,) = slurm_jobs("4242", sacct(JOB | {"User": "nobody"}))
    output = records(record_job(job, home))[Output]
    assert isinstance(output, Output)
    assert output.size == 0


def test_a_home_that_cannot_be_written_is_told(sacct: Answer, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    (job,) = slurm_jobs("4242", sacct(JOB))
    with pytest.raises(InputError, match="cannot be written"):
        record_job(job, tmp_path / "home")
