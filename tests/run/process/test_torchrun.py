"""Under the real torchrun: a supervisor around it, and one for each rank."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from epochzero.run.records.model import Conclusion, Output
from epochzero.store.database import open_database
from epochzero.store.job_details import job_details
from epochzero.store.queries import EVERY_JOB, find_job, find_jobs
from epochzero.store.recorder import sweep
from tests.run.conftest import Kept, command
from tests.torch_jobs import light_torch
from tests.waiting import PATIENCE_S

pytest.importorskip("torch", reason="torchrun comes with torch")

TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2")
SCRIPT = """\
import torch, torch.distributed as dist

dist.init_process_group("gloo")
config = {"rate": 0.1}
if dist.get_rank() == 1:
    config["lr"]
dist.barrier()
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "train.py"
    path.write_text(light_torch(SCRIPT))
    return str(path)


def _run(*words: str) -> int:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    home = Path(environment["EPOCHZERO_HOME"]).parent
    return subprocess.run(
        words, capture_output=True, timeout=PATIENCE_S, env=environment, cwd=home
    ).returncode


def test_a_supervisor_around_it_knows_which_rank_failed_first(kept: Kept, script: str) -> None:
    assert _run(*command("--", *TORCHRUN, script)) == 1
    outputs = [record for record in kept.records if isinstance(record, Output)]
    assert [output.name for output in outputs] == ["output", "rank0", "rank1"]
    assert b"KeyError: 'lr'" in kept.log("rank1")
    (diagnosis,) = [record.diagnosis for record in kept.records if isinstance(record, Conclusion)]
    assert diagnosis is not None
    assert (diagnosis["root"]["rank"], diagnosis["category"]) == (1, "key_not_found")
    assert diagnosis["root"]["text"] == "[rank1]: KeyError: 'lr'"


def test_a_rank_that_is_ended_for_another_says_so(kept: Kept, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import os, time\n"
        "if os.environ['RANK'] == '1':\n    raise KeyError('lr')\n"
        "print('ready', flush=True)\ntime.sleep(60)\n"
    )
    words = (*TORCHRUN, "--no-python", *command("--", sys.executable, str(script)))
    done = subprocess.run(words, capture_output=True, timeout=PATIENCE_S, cwd=tmp_path)
    assert done.returncode == 1
    assert b"was killed by SIGTERM" in done.stderr
    assert b"because another rank failed" in done.stderr
    assert done.stderr.count(b"FAILED  ") == 1
    database = open_database(tmp_path / "jobs.db")
    sweep(database, kept.home / "runs")
    (attempt,) = job_details(database, find_job(database, "last")).attempts
    assert attempt.state == "failed"
    states = {
        rank.rank: (rank.state, [event["what"] for event in rank.events]) for rank in attempt.ranks
    }
    told = [event for rank in attempt.ranks for event in rank.events]
    assert states[0] == ("ended", ["signal", "ended_for_rank"]), told
    assert states[1][0] == "failed"
    database.close()


def test_supervisors_of_all_ranks_make_one_job(kept: Kept, script: str, tmp_path: Path) -> None:
    assert _run(*TORCHRUN, "--no-python", *command("--", sys.executable, script)) == 1
    (job,) = {path.parent for path in kept.home.glob("runs/*/*")}
    assert sorted(path.name for path in job.iterdir()) == ["1-r0", "1-r1"]
    database = open_database(tmp_path / "jobs.db")
    sweep(database, kept.home / "runs")
    (summary,) = find_jobs(database, EVERY_JOB)
    assert (summary.state, summary.launcher, summary.attempts) == ("failed", "torchrun", 1)
    (attempt,) = job_details(database, find_job(database, "last")).attempts
    first = min(attempt.ranks, key=lambda rank: rank.ended or 0.0)
    assert (len(attempt.ranks), first.rank, first.exit_code) == (2, 1, 1)
    assert summary.category == "key_not_found"
    assert first.diagnosis is not None
    assert first.diagnosis["root"]["text"].endswith("KeyError: 'lr'")
    database.close()
