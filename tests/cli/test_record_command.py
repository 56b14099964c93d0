"""``epochzero record``: a job of Slurm's is in the store after its end."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.run.test_slurm import FIELDS, JOB, LOG, SACCT

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
