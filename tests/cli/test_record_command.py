"""``epochzero record``: a Slurm job is stored after its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.run.scheduler.test_slurm_record import FIELDS, JOB, LOG, SACCT

if TYPE_CHECKING:
    from conftest import Command


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job's log, with sacct on the path and an empty home."""
    program = tmp_path / "sacct"
    data = json.dumps([FIELDS.split(), [JOB | {"WorkDir": str(tmp_path)}]])
    program.write_text(SACCT.format(python=sys.executable, data=data))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("EPOCHZERO_HOME", str(tmp_path / "home"))
    for variable in ("EPOCHZERO_STORE", "SLURM_JOB_ID"):
        monkeypatch.delenv(variable, raising=False)
    log = tmp_path / "log"
    log.write_text(LOG)
    return log


def test_a_recorded_job_is_listed_and_shown(run: Command, log: Path) -> None:
    done = run("record", "--job-id", "4242", "--logs", log)
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("job 4242 (resnet): recorded; epochzero show ")
    (job,) = json.loads(run("jobs", "--format", "json").out)
    assert (job["name"], job["state"], job["category"]) == ("resnet", "failed", "key_not_found")
    assert (job["launcher"], job["gpus"], job["gpu_hours"]) == ("slurm", 8, 8.0)
    assert run("show", "last", "--log").out == LOG
    assert "already recorded" in run("record", "--job-id", "4242", "--logs", log).err


def test_an_epilog_names_the_job_in_a_variable(
    run: Command, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("record").code == 2
    monkeypatch.setenv("SLURM_JOB_ID", "4242")
    assert run("record", "--logs", log).code == 0


# Answers as scontrol(1) does; the job is completing until a file exists.
SCONTROL = """\
#!/bin/sh
end="JobName=resnet StartTime=2026-05-01T12:00:00 EndTime=2026-05-01T13:00:00 TRES=cpu=8,gres/gpu=8"
if [ -e {released} ]; then echo "JobId=4242 JobState=CANCELLED Restarts=0 ExitCode=0:15 $end"
else echo "JobId=4242 JobState=COMPLETING Restarts=0 ExitCode=0:0 $end"; fi
"""


def test_an_epilog_returns_before_slurm_knows_the_end(
    run: Command, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = tmp_path / "released"
    (tmp_path / "sacct").write_text("#!/bin/sh\necho no database >&2; exit 1\n")
    (tmp_path / "scontrol").write_text(SCONTROL.format(released=released))
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("SLURM_JOB_ID", "4242")
    monkeypatch.setenv("SLURM_JOB_EXIT_CODE2", "0:0")
    words = [sys.executable, "-m", "epochzero", "record", "--logs", str(log)]
    # Its pipes reach their end only when no process holds them.
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "job 4242 is completing and will be recorded when it has ended\n"
    assert json.loads(run("jobs", "--format", "json").out) == []
    released.touch()
    end = time.monotonic() + 300
    while not (jobs := json.loads(run("jobs", "--format", "json").out)):
        assert time.monotonic() < end
        time.sleep(0.2)
    assert (jobs[0]["name"], jobs[0]["gpu_hours"]) == ("resnet", 8.0)
    details = json.loads(run("show", jobs[0]["id"], "--format", "json").out)
    assert details["attempts"][0]["exit_code"] == 143
    assert details["attempts"][0]["ranks"][0]["why"] == "user"
